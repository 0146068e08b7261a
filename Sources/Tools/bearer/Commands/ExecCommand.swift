internal import ArgumentParser
internal import Commands
internal import Foundation
internal import OIDCClient

struct ExecCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "exec",
    abstract: "Run a command with files that always have a valid token.",
    discussion: """
      $BEARER_TOKEN_FILE names the file with the token, $BEARER_CURL_CONFIG one for `curl --config`. They are renewed \
      while the command runs, and removed with it. The exit code is that of the command. Example:
        bearer exec work -- sh -c 'curl -K "$BEARER_CURL_CONFIG" "$API"'
      """)

  @OptionGroup var options: BearerOptions
  @OptionGroup var chosen: AccountOption

  @Argument(help: "The provider (default: the one of the configuration).")
  var provider: String?

  @Argument(parsing: .postTerminator, help: "The command and its arguments, after --.")
  var command: [String] = []

  func validate() throws {
    guard let name = command.first, !name.isEmpty else { throw ValidationError("there is no command after --") }
  }

  /// How long a renewal that is under way is waited for.
  private static let patience = Duration.seconds(5)

  private static func end(of renewal: Task<Void, Never>) async {
    let (ends, end) = AsyncStream<Void>.makeStream()
    // Neither is a child: the one that hangs is left to the end of the program.
    Task {
      await renewal.value
      end.finish()
    }
    Task {
      try? await Task.sleep(for: patience)
      end.finish()
    }
    for await _ in ends {}
  }

  func run() async throws {
    let access = try options.access()
    let account = try access.account(provider, chosen)
    let session = try access.session(account)
    let tokens = try await session.tokens()
    guard !tokens.isBound else { throw Failure.bound(account) }
    // From here on no signal ends this program before the files are gone.
    let signals = CommandProcess.Signals()
    let files = try TokenFiles(
      certificate: session.provider.trust.clientCertificate, environment: ProcessInfo.processInfo.environment)
    defer { files.remove() }
    try files.write(tokens.tokens.accessToken)
    let process = try CommandProcess(
      command, variables: ["BEARER_TOKEN_FILE": files.token, "BEARER_CURL_CONFIG": files.curl], signals: signals)
    let keeper = TokenKeeper(session: session, store: access.store, files: files)
    let renewal = Task { await keeper.run(tokens) }
    let code = await process.exitCode()
    files.remove()
    renewal.cancel()
    // A renewal that is under way is stored before the program ends. One that hangs is known to the store as sent, so
    // that the next one asks again.
    await Self.end(of: renewal)
    guard code == 0 else { throw ExitCode(code) }
  }
}
