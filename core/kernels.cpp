// Compiled once per instruction set, with CRFKIT_ISA naming the namespace. Only code whose every symbol lives in
// that namespace may be used here: an inline function of the standard library compiled for a new processor
// could otherwise be the copy that the linker keeps for all.
namespace crfkit::CRFKIT_ISA {}
