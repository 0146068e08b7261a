import Glibc

// The functions that libFuzzer calls. The driver provides `main`; the environment selects the target.

/// Called once, before the first input. Commands other than fuzzing exit here.
@_cdecl("LLVMFuzzerInitialize")
public func initializeFuzzer(_ count: UnsafeMutableRawPointer?, _ arguments: UnsafeMutableRawPointer?) -> CInt {
  OpenSSLMemory.begin()
  if let status = Command.run(Array(CommandLine.arguments.dropFirst())) { exit(status) }
  guard chosen != nil else {
    Standard.error("error: SALLYPORT_FUZZ_TARGET is not the name of a target\nhint: run scripts/fuzz --list")
    exit(64)
  }
  return 0
}

/// Called for each input. Aborts at a finding, which is how libFuzzer detects it.
@_cdecl("LLVMFuzzerTestOneInput")
public func testInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  guard let chosen else { return -1 }
  do throws(InvariantViolation) {
    _ = try chosen.accepts(Array(UnsafeBufferPointer(start: start, count: min(count, chosen.longest))))
    return 0
  } catch {
    Standard.error("invariant violated in \(chosen.name): \(error)")
    abort()
  }
}

private let chosen = Standard.environment("SALLYPORT_FUZZ_TARGET").flatMap(FuzzTarget.named)

/// The standard streams and the environment of the process.
enum Standard {
  static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

  static func error(_ text: String) {
    let line = Array((text + "\n").utf8)
    _ = write(STDERR_FILENO, line, line.count)
  }
}
