extension ChildProcess {
  /// Runs a command, and prints the most memory that it had, in KiB, below what it printed itself.
  private static let measured = """
    import resource, subprocess, sys
    code = subprocess.run(sys.argv[1:]).returncode
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    sys.exit(code)
    """

  /// Runs `path` to its end and returns the most memory that it had at a time, in KiB; `nil` if it failed.
  public static func peakMemory(
    _ path: String, _ arguments: [String], environment: [String: String?], in folder: String
  ) async throws -> Int? {
    let run = try await run(
      "/usr/bin/python3", ["-c", measured, path] + arguments, environment: environment, in: folder)
    return run.exit == .code(0) ? run.output.last.flatMap { Int($0) } : nil
  }
}
