import TestSupport
import Testing

@Suite("sallyport dev", .timeLimit(.minutes(5)))
struct DevCommandTests {
  @Test("The development gate serves without its upstream, and warns that it is unreachable")
  func upstreamIsAbsent() async throws {
    try await Places.withTemporaryFolder { folder in
      let process = try ChildProcess(
        Places.product("sallyport"),
        ["dev", "--port", "0", "--upstream", "ws://127.0.0.1:1", "--folder", folder + "/dev"])
      defer { process.kill() }
      let line = try await process.errors.first("the warning") { $0.hasPrefix("warning: ") }
      #expect(line == "warning: ws://127.0.0.1:1 cannot be reached: 127.0.0.1:1: Connection refused")
    }
  }
}
