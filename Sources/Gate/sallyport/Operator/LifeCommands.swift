internal import ArgumentParser
internal import GateRuntime
internal import GateService
internal import Settings

/// What a reload is answered with.
private struct Reloaded: Codable {
  let reloaded: Bool
  let needsRestart: [String]
}

struct ReloadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload",
    abstract: "Makes a running gate reload its configuration, as SIGHUP does; open sessions do not notice.",
    discussion: """
      What is wrong with the new one is told, and the old one stays. The gate needs an admin server: admin.listen.

      Example:

        sallyport reload -c /etc/sallyport/sallyport.yaml
      """)

  @OptionGroup var configuration: ConfigurationOption

  @Flag(help: "Write the answer as one line of JSON.")
  var json = false

  func run() async throws {
    do throws(SallyportError) {
      let answer = try await configuration.client().send("POST", "/v1/reload", Reloaded.self)
      if json {
        Console.print(AdminJSON.text(of: answer))
      } else {
        Console.print("reloaded")
        if !answer.needsRestart.isEmpty {
          Console.error("warning: changes of \(answer.needsRestart.joined(separator: ", ")) need a restart")
        }
      }
    } catch {
      throw error.told()
    }
  }
}

/// What a drain is answered with.
private struct Draining: Codable { let draining: Bool }

struct DrainCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "drain",
    abstract: "Ends a running gate as SIGTERM does: unready, then every session is closed with 1001.",
    discussion: """
      Returns at once; the gate ends within shutdown.unready_delay and shutdown.drain_timeout.

      Example:

        sallyport drain -c /etc/sallyport/sallyport.yaml
      """)

  @OptionGroup var configuration: ConfigurationOption

  @Flag(help: "Write the answer as one line of JSON.")
  var json = false

  func run() async throws {
    do throws(SallyportError) {
      let answer = try await configuration.client().send("POST", "/v1/drain", Draining.self)
      Console.print(json ? AdminJSON.text(of: answer) : "draining")
    } catch {
      throw error.told()
    }
  }
}
