import Glibc

// What libFuzzer calls. The driver brings `main`; which target it drives, the environment says.

/// Called once, before the first input. The commands that are not fuzzing end the process here.
@_cdecl("LLVMFuzzerInitialize")
public func initializeFuzzer(_ count: UnsafeMutableRawPointer?, _ arguments: UnsafeMutableRawPointer?) -> CInt {
  OpenSSLMemory.begin()
  if let status = Command.run(Array(CommandLine.arguments.dropFirst())) { exit(status) }
  guard chosen != nil else {
    Standard.error("error: SALLYPORT_FUZZ_TARGET names no target\nhint: scripts/fuzz --list")
    exit(64)
  }
  return 0
}

/// Called for each input. Ends the process at a finding, which is how libFuzzer learns of it.
@_cdecl("LLVMFuzzerTestOneInput")
public func testInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  guard let chosen else { return -1 }
  do throws(InvariantViolation) {
    _ = try chosen.accepts(Array(UnsafeBufferPointer(start: start, count: min(count, chosen.longest))))
    return 0
  } catch {
    Standard.error("broken law of \(chosen.name): \(error)")
    abort()
  }
}

private let chosen = Standard.environment("SALLYPORT_FUZZ_TARGET").flatMap(FuzzTarget.named)

/// Streams and environment of the process.
enum Standard {
  static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

  static func error(_ text: String) {
    let line = Array((text + "\n").utf8)
    _ = write(STDERR_FILENO, line, line.count)
  }
}
