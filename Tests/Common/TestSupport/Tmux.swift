/// A terminal of 80 columns and 12 rows, by tmux.
public struct Tmux: Sendable {
  private let socket: String

  /// Calls `body` with a terminal whose socket is in `folder`, and ends the terminal afterwards.
  public static func withTerminal(in folder: String, _ body: (Tmux) async throws -> Void) async throws {
    let tmux = Tmux(socket: folder + "/tmux")
    do {
      try await body(tmux)
    } catch {
      await tmux.stop()
      throw error
    }
    await tmux.stop()
  }

  /// Runs a command of tmux and returns what it prints.
  public func run(_ words: String...) async throws -> [String] {
    let run = try await ChildProcess.run(try Places.tool("tmux"), ["-S", socket, "-f", "/dev/null"] + words)
    guard run.exit == .code(0) else { throw ScreenMissing(text: run.errors.joined()) }
    return run.output
  }

  /// Runs `command` in it, with further variables.
  public func start(_ command: String, _ environment: [String: String?]) async throws {
    let variables = environment.compactMap { name, value in value.map { "\(name)='\($0)'" } }.joined(separator: " ")
    _ = try await run("new-session", "-d", "-x", "80", "-y", "12", "env \(variables) \(command); sleep 60")
    _ = try await run("set", "-s", "set-clipboard", "on")
  }

  /// Presses keys, by their names in tmux.
  public func press(_ keys: String...) async throws {
    for key in keys { _ = try await run("send-keys", key) }
  }

  /// The lines of the screen, once `count` of them contain `text`.
  @discardableResult
  public func screen(with text: String, times count: Int = 1, styled: Bool = false) async throws -> [String] {
    var lines: [String] = []
    for _ in 0..<600 {
      lines = styled ? try await run("capture-pane", "-p", "-e") : try await run("capture-pane", "-p")
      if lines.count(where: { $0.contains(text) }) >= count { return lines }
      try await Task.sleep(for: .milliseconds(50))
    }
    throw ScreenMissing(text: "\(text) is not \(count) times in \(lines)")
  }

  private func stop() async { _ = try? await run("kill-server") }
}

private struct ScreenMissing: Error, CustomStringConvertible {
  let text: String
  var description: String { text }
}
