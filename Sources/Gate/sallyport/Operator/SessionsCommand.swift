internal import ArgumentParser
internal import ByteCoding
internal import GateRuntime
internal import GateService
internal import Glibc
internal import Settings

/// The parent of the commands that manage open sessions.
struct SessionsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sessions",
    abstract: "Lists and closes the open sessions of a running gate.",
    discussion: """
      Each gate knows only its own sessions. The gate needs an admin server: admin.listen.

      Example:

        sallyport sessions list -c /etc/sallyport/sallyport.yaml
      """,
    subcommands: [SessionsListCommand.self, SessionsCloseCommand.self])
}

extension ConfigurationOption {
  /// Connects to the admin server of the gate that runs with the configuration.
  func client() async throws(SallyportError) -> AdminClient {
    guard let admin = try places().admin else {
      throw SallyportError(
        .configuration, error: "the configuration has no admin server",
        hint: "name the gate's configuration with -c FILE; add admin: { listen: \"unix:/run/sallyport/admin.sock\" }")
    }
    guard let client = try await AdminClient.gate(at: admin) else {
      throw SallyportError(
        .unavailable, error: "no gate is running at \(admin.address.text)",
        hint:
          "start it: sallyport run -c FILE; if admin.listen changed since the start, use SIGHUP or SIGTERM instead"
      )
    }
    return client
  }
}

struct SessionsListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Lists open sessions, oldest first.",
    discussion: """
      Prints a table on a terminal, otherwise tab-separated lines: id, key, app, route, method, opening time, age in \
      seconds, client. With --json, one line of JSON per session.

      Example: the sessions of one key

        sallyport sessions list -c gate.yaml --key Kq3bX0rJ6mVwYd1s
      """)

  @OptionGroup var configuration: ConfigurationOption

  @Option(
    help: "Only sessions of this key: its hash, 6 or more characters of it, or the device's key id.",
    transform: KeyArgument.name)
  var key: KeyName?

  @Flag(help: "Print each session as one line of JSON.")
  var json = false

  func run() async throws {
    do throws(SallyportError) {
      let client = try await configuration.client()
      var table = Table("SESSION", "KEY", "APP", "ROUTE", "METHOD", "OPENED", "AGE", "CLIENT")
      var cursor: String?
      repeat {
        let query = Query(("limit", "500"), ("after", cursor), ("key", key?.text))
        let page = try await client.send("GET", "/v1/sessions" + query.text, SessionListing.self)
        if json {
          for session in page.sessions { Console.print(JSONText.encoding(session)) }
        } else {
          table.print(page.sessions.map(Self.row))
        }
        cursor = page.next
      } while cursor != nil
    } catch {
      throw error.told()
    }
  }

  private static func row(_ session: SessionDescription) -> [String] {
    let key = session.key.map { Terminal.isTerminal(STDOUT_FILENO) ? String($0.prefix(16)) : $0 }
    return [
      session.id, key ?? "-", session.app ?? "-", session.route, session.method, session.openedAt,
      "\(session.ageSeconds)", session.address,
    ]
  }
}

struct SessionsCloseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "close",
    abstract: "Closes sessions with 1001.",
    discussion: """
      The device can connect again at once. To block it, revoke its key.

      Example:

        sallyport sessions close -c gate.yaml 5f1d0c7e9a3b4286b1c2d3e4f5a60718
      """)

  @OptionGroup var configuration: ConfigurationOption

  @Argument(help: "The session ids: the request ids in the log of the requests that opened them.")
  var id: [String]

  @Flag(help: "Print each session as one line of JSON.")
  var json = false

  func validate() throws {
    for id in id where id.isEmpty || !id.utf8.allSatisfy({ Self.digits.contains($0) }) {
      throw ValidationError("\"\(TerminalText.printable(id))\" is not a session id: 32 hex digits")
    }
  }

  private static let digits = Array("0123456789abcdef".utf8)

  func run() async throws {
    do throws(SallyportError) {
      let client = try await configuration.client()
      for id in id {
        let closing = try await client.send("DELETE", "/v1/sessions/\(id)", SessionClosing.self)
        Console.print(json ? JSONText.encoding(closing) : "\(closing.id)\tclosed")
      }
    } catch {
      throw error.told()
    }
  }
}
