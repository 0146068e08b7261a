import ACME
import Wire
import TestSupport
import Testing
import Transport

@Suite("A server of ACME behind a proxy", .timeLimit(.minutes(1)))
struct ProxyTests {
  private func error(_ variables: [String: String], _ url: String) async throws -> ACMEError? {
    let transport = try EngineTransport(authorityFile: nil, proxies: ProxyVariables { variables[$0] })
    return await #expect(throws: ACMEError.self) {
      _ = try await transport.send("GET", url, headers: HeaderFields(), body: [])
    }
  }

  @Test("The server is unreachable if its proxy refuses, with the proxy's status and without its password")
  func refusal() async throws {
    let relay = try ForwardProxyServer(.answer(Array("HTTP/1.1 407 x\r\n\r\n".utf8)))
    defer { relay.stop() }
    let proxy = "http://user:hunter2@127.0.0.1:\(relay.port)"
    let error = try await error(["HTTPS_PROXY": proxy], "https://acme.example.test/directory")
    guard case .unreachable("acme.example.test", let reason) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(reason.contains("status 407: it refuses the user and the password of HTTPS_PROXY"))
    #expect(!reason.contains("hunter2") && relay.heads.count == 1)
  }

  @Test("A faulty variable makes it unreachable, and a server of this machine is asked directly")
  func faultyVariable() async throws {
    let variables = ["all_proxy": "socks5://user:hunter2@x"]
    let error = try await error(variables, "https://acme.example.test/directory")
    guard case .unreachable(_, let reason) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(reason.hasPrefix("all_proxy: ") && reason.contains("write all_proxy=") && !reason.contains("hunter2"))
    let direct = try await self.error(variables, "https://localhost:1/directory")
    #expect(direct?.description.contains("proxy") == false)
  }
}
