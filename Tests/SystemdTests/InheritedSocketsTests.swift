import Systemd
import Testing

@Suite("Sockets of the service manager")
struct InheritedSocketsTests {
  @Test(
    "Descriptors from 3 on are ours if the number of the process is, or is left out",
    arguments: [
      ([:], []), (["LISTEN_FDS": "2", "LISTEN_PID": "77"], [3, 4]), (["LISTEN_FDS": "1"], [3]),
      (["LISTEN_FDS": "1", "LISTEN_PID": "78"], []), (["LISTEN_FDS": "0"], []),
    ] as [([String: String], [Int32])])
  func descriptors(environment: [String: String], expected: [Int32]) throws {
    #expect(try InheritedSockets.descriptors(environment: environment, process: 77) == expected)
  }

  @Test("What is no number of sockets is refused", arguments: ["", "-1", "x", "1025", "99999999999"])
  func malformed(text: String) {
    #expect(throws: InheritedSockets.Malformed.self) {
      try InheritedSockets.descriptors(environment: ["LISTEN_FDS": text])
    }
  }
}
