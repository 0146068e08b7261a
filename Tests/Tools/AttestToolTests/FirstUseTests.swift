import Foundation
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@testable import attest

/// A server without TLS behind a gate that answers each request with `answer`.
private final class AnsweringBackend: RequestResponder {
  private let answer: Response

  init(_ answer: Response) { self.answer = answer }

  func respond(to request: Request, from peer: Peer) async -> Disposition { .respond(answer) }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Response(status: 400)
  }

  /// Calls `body` with the URL of a server with this answer.
  static func serving<R>(_ answer: Response, _ body: (String) async throws -> R) async throws -> R {
    let engine = try Engine(
      listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: nil, responder: AnsweringBackend(answer))
    defer { engine.stop() }
    return try await body("ws://\(engine.address)")
  }
}

@Suite("The first use of attest", .serialized)
struct FirstUseTests {
  @Test(
    "Without --authority, a gate on this machine is trusted by the default folder of sallyport dev, and a line says so")
  func standardFolder() async throws {
    let place = try Workplace()
    let folder = place.folder + "/data/sallyport/dev"
    let echo = try await place.start(.attest, ["echo", "--listen", "127.0.0.1:0"], lines: 1)
    let gate = try await place.startGate(
      upstream: try #require(echo.firstLines.first), port: 0, in: "data/sallyport/dev")
    let url = try #require(gate.url)
    let note = "authority: \(folder)\n"
    for address in [url, url.replacing("localhost", with: "127.0.0.1"), url.replacing("localhost", with: "[::1]")] {
      let outcome = try await place.run(["register", address])
      #expect(outcome.errors.hasPrefix(note), "\(outcome.errors)")
      #expect(!outcome.errors.contains("a simulated device needs an authority"), "\(outcome.errors)")
    }
    #expect(
      try await place.run(["connect", url, "--once", "hello"]) == Outcome(status: 0, output: "hello\n", errors: note))
    let named = try await place.run(["connect", url, "--once", "hello", "--authority", folder])
    #expect(named == Outcome(status: 0, output: "hello\n", errors: ""))
    let variable = try await place.run(
      ["connect", url, "--once", "hello"], environment: ["SALLYPORT_AUTHORITY": folder])
    #expect(variable == Outcome(status: 0, output: "hello\n", errors: ""))
    // A gate elsewhere never gets a device of the development folder by itself.
    for address in ["wss://gate.example.com/", "wss://10.0.0.1/", "wss://localhost.example.com/"] {
      let elsewhere = try await place.run(["register", address])
      #expect(elsewhere.status == 64)
      #expect(
        elsewhere.errorLines.first == "error: a simulated device needs an authority that vouches for it",
        "\(elsewhere.errors)")
    }
  }

  @Test("Without a development folder, a gate on this machine needs --authority too")
  func noFolder() async throws {
    let outcome = try await Workplace().run(["register", "wss://localhost:1/"])
    #expect(outcome.status == 64)
    #expect(outcome.errorLines.first == "error: a simulated device needs an authority that vouches for it")
  }

  @Test("An answer of the server behind the gate is not reported as a refusal of the gate", arguments: [401, 404, 500])
  func upstreamAnswers(_ status: Int) async throws {
    let answer = Response(
      status: status,
      headers: HeaderFields([
        .init(name: "Content-Type", value: "text/plain"), .init(name: "X-Attest-Error", value: "key_refused"),
      ]), body: Array("sign in first".utf8))
    try await AnsweringBackend.serving(answer) { upstream in
      let setup = try await GateSetup(upstream: upstream)
      let outcome = try await setup.attest("connect", setup.url, "--once", "x")
      #expect(outcome.status == 77)
      #expect(
        outcome.errorLines.first?.hasPrefix(
          "error: the server behind the gate answered \(status): sign in first (request ")
          == true, "\(outcome.errors)")
      #expect(outcome.errorLines.last?.hasPrefix("hint: the gate admitted this client") == true, "\(outcome.errors)")
      // The probe needs a server that opens sockets, and names the one that does not.
      let probe = try await setup.attest("probe", setup.url)
      #expect(
        probe.errorLines.contains {
          $0.hasPrefix("error: the server behind the gate does not open a socket: \(status)")
        },
        "\(probe.errors)")
    }
  }
}

@Suite("The examples in the help of attest")
struct HelpExampleTests {
  /// Returns the lines of `help` that are examples, with continued lines joined.
  private static func examples(in help: String) -> [String] {
    let joined = help.replacing(#/ \\\n\s*/#, with: " ")
    return joined.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
      .filter { $0.hasPrefix("attest ") && !$0.contains("<") && !$0.contains("[") }
      .map { String($0.prefix { $0 != "#" && $0 != ">" && $0 != "|" }).trimmingCharacters(in: .whitespaces) }
  }

  @Test("Each example is a valid command line")
  func valid() async throws {
    let place = try Workplace()
    var commands: [[String]] = [[]]
    var examples: Set<String> = []
    while let command = commands.popLast() {
      let help = try await place.run(command + ["--help"])
      #expect(help.status == 0)
      examples.formUnion(Self.examples(in: help.output))
      let list = help.output.split(separator: "\n").drop { !$0.hasSuffix("SUBCOMMANDS:") }.dropFirst()
      for line in list where line.hasPrefix("  ") && !line.hasPrefix("   ") {
        // The last line, "See …", is a sentence.
        if let name = line.split(separator: " ").first, name != "help", name != "See" {
          commands.append(command + [String(name)])
        }
      }
    }
    #expect(examples.count > 30, "\(examples)")
    // Two begin to serve, and one has a word with a blank.
    for example in examples where !example.hasPrefix("attest echo") && !example.contains(#/--all|'/#) {
      // Nothing listens there, so that a valid command line fails for another reason.
      let line = example.replacing(#/wss:\/\/\S+/#, with: "wss://localhost:1/")
        .replacing("DIR", with: place.folder + "/none")
      let outcome = try await place.run(line.split(separator: " ").dropFirst().map(String.init))
      #expect(outcome.status != 64, "\(example): \(outcome.errors)")
    }
  }
}
