import Foundation
import GateProcesses
import Glibc
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// Schemathesis, which generates requests from an OpenAPI document.
private let schemathesis = PythonPackages(
  name: "schemathesis", packages: ["schemathesis>=4,<5"], modules: "import schemathesis.cli")

@Suite("The OpenAPI description of the admin server", .serialized, .timeLimit(.minutes(10)))
struct OpenAPITests {
  @Test("The description contains every operation once, with its parameters")
  func document() async throws {
    try await ObservabilityBench.serving { bench in
      let answer = try await bench.ask("GET", "/v1/openapi.json")
      #expect(answer.status == 200)
      let document = try #require(JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any])
      #expect(document["openapi"] as? String == "3.1.0")
      let paths = try #require(document["paths"] as? [String: [String: Any]])
      let operations = paths.flatMap { path, methods in methods.keys.map { "\($0) \(path)" } }.sorted()
      #expect(
        operations == [
          "delete /v1/keys/{key}", "delete /v1/sessions/{id}", "get /", "get /livez", "get /metrics", "get /readyz",
          "get /status", "get /v1/activity", "get /v1/configuration", "get /v1/keys", "get /v1/keys/{key}",
          "get /v1/keys/{key}/decisions", "get /v1/openapi.json", "get /v1/refusals", "get /v1/sessions",
          "get /v1/status", "get /v1/upstreams",
          "post /v1/drain", "post /v1/keys/{key}/restore",
          "post /v1/keys/{key}/revoke", "post /v1/reload", "post /v1/upgrade", "post /v1/upstreams/drain",
          "post /v1/upstreams/resume",
        ])
    }
  }

  @Test("Each JSON answer has a schema with all members and without others")
  func forms() async throws {
    try await ObservabilityBench.serving { bench in
      let answer = try await bench.ask("GET", "/v1/openapi.json")
      let document = try #require(JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any])
      let schemas = try #require((document["components"] as? [String: Any])?["schemas"] as? [String: [String: Any]])
      for (path, methods) in try #require(document["paths"] as? [String: [String: [String: Any]]]) {
        for (method, operation) in methods {
          for (status, response) in operation["responses"] as? [String: [String: Any]] ?? [:] {
            let json = (response["content"] as? [String: [String: Any]])?["application/json"]
            guard let schema = json?["schema"] as? [String: Any] else { continue }
            let name = (schema["$ref"] as? String)?.components(separatedBy: "/").last
            #expect(name.flatMap { schemas[$0] } != nil, "\(method) \(path) \(status)")
          }
        }
      }
      for (name, schema) in schemas where name != "Document" {
        #expect(schema["additionalProperties"] as? Bool == false, "\(name)")
        let properties = try #require(schema["properties"] as? [String: Any])
        #expect(Set(schema["required"] as? [String] ?? []).isSubset(of: properties.keys), "\(name)")
      }
    }
  }

  @Test(
    "Answers to Schemathesis match the description: no 5xx, and no undocumented status, type or body",
    .enabled("schemathesis cannot be installed: it needs python3-venv and PyPI") { await schemathesis.arePresent() })
  func generatedRequests() async throws {
    let port = try Places.freePort()
    let token = String(repeating: "0123456789abcdef", count: 4)
    let echo = try await EchoProcess()
    defer { echo.process.kill() }
    try await Places.withTemporaryFolder { folder in
      var plan = GatePlan()
      plan.routes = [("/", echo.upstream)]
      plan.admin = "{ listen: \"127.0.0.1:\(port)\", token_file: \"\(folder)/token\" }"
      try Data((token + "\n").utf8).write(to: URL(fileURLWithPath: folder + "/token"))
      chmod(folder + "/token", 0o600)
      let gate = try await GateProcess(plan, in: folder + "/gate")
      defer { gate.process.kill() }
      // The lists are not empty: two sessions of one key.
      let (visitor, phone) = (try Visitor(to: gate), try Phone(of: gate.authority))
      try await visitor.register(phone)
      let sessions = [
        try await visitor.open(as: phone, counter: 1), try await visitor.open(as: phone, counter: 2),
      ]
      defer { withExtendedLifetime(sessions) {} }
      let (exit, output, errors) = try await ChildProcess.run(
        schemathesis.program("schemathesis"),
        [
          "run", "http://127.0.0.1:\(port)/v1/openapi.json", "--header", "Authorization: Bearer \(token)",
          "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
          // These requests would stop the gate.
          "--exclude-path", "/v1/drain", "--exclude-path", "/v1/upgrade", "--max-examples", "40", "--seed", "1",
          "--no-color",
        ], in: folder, within: .seconds(400))
      #expect(exit == .code(0), "\((output + errors).joined(separator: "\n"))")
      #expect(!gate.process.hasEnded)
    }
  }
}
