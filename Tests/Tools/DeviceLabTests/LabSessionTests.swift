import ByteCoding
import Foundation
import Locking
import MFAClient
import MFAViewModels
import SimulatedPhone
import Testing

@testable import attest

@Suite("A page of the device lab", .timeLimit(.minutes(1)))
struct LabSessionTests {
  /// What a page has received.
  private final class Page: Sendable {
    private let texts = LockedValue<[String]>([])
    var received: [String] { texts.withLock(\.self) }
    func take(_ text: String) { texts.withLock { $0.append(text) } }

    private struct StateMessage: Decodable { let state: State }
    struct State: Decodable {
      struct Enrolment: Decodable { let title: String }
      struct Settings: Decodable { let alert: String? }
      struct Prompt: Decodable { let id: Int }
      struct Phone: Decodable {
        let prompts: [Prompt]
        let isPasscodeSet: Bool
        let messages: [String]
        let timesSettingsOpened: Int
      }
      struct Scenario: Decodable { let status: String }
      struct Exchange: Decodable { let operation: String }
      struct Sequence: Decodable { let exchanges: [Exchange] }
      struct Dashboard: Decodable { let result: String? }
      let tab: String
      let username: String
      let phone: Phone
      let enrolment: Enrolment
      let dashboard: Dashboard
      let settings: Settings
      let scenarios: [Scenario]
      let sequence: Sequence?
    }

    var state: State? {
      received.last { $0.hasPrefix(#"{"state":"#) }
        .flatMap { try? JSONDecoder().decode(StateMessage.self, from: Data($0.utf8)).state }
    }
    var errors: [String] { received.filter { $0.hasPrefix(#"{"error":"#) } }

    /// Waits until `condition` holds for what the page shows.
    func wait(_ condition: (State) -> Bool) async throws {
      for _ in 0..<1000 {
        if let state, condition(state) { return }
        try await Task.sleep(for: .milliseconds(5))
      }
      Issue.record("the page shows \(received.last ?? "nothing")")
    }
  }

  private let backend = ApprovingBackend()

  private func session() throws -> LabSession {
    let backend = backend
    return try LabSession(
      as: ScenarioPlayer.Identity(username: "ada", phoneNumber: "+15550101", deviceID: "phone-1"), messages: backend,
      makeBackend: { backend },
      makeIdentity: { ScenarioPlayer.Identity(username: $0.id, phoneNumber: "+15550102", deviceID: "phone-1") },
      now: { Timestamp(milliseconds: 1_800_000_000_000) })
  }

  @Test("A-045 the page enrols a device, and answers its prompts")
  func enrols() async throws {
    let (lab, page) = (try session(), Page())
    _ = await lab.open(page.take)
    await lab.receive(#"{"event":"tab","value":"enroll"}"#)
    try await page.wait { $0.enrolment.title == "Protect your account" }
    await lab.receive(#"{"event":"enroll","value":"useBiometrics"}"#)
    try await page.wait { $0.phone.prompts.count == 1 }
    await lab.receive(#"{"event":"answer","number":1,"value":"approve"}"#)
    try await page.wait { $0.phone.prompts.map(\.id) == [2] }
    await lab.receive(#"{"event":"answer","number":2,"value":"approve"}"#)
    try await page.wait { $0.enrolment.title == "Device enrolled" }
    #expect(page.errors.isEmpty)
    #expect(page.received.contains { $0.contains(#""time":"2027-01-15T08:00:00.000Z""#) })
    await lab.end()
  }

  @Test("A-042 A-133 a change of the phone's settings returns to the app, which notices it")
  func settings() async throws {
    let (lab, page) = (try session(), Page())
    _ = await lab.open(page.take)
    await lab.receive(#"{"event":"passcode","flag":false}"#)
    try await page.wait { $0.enrolment.title == "No device security" && !$0.phone.isPasscodeSet }
    await lab.receive(#"{"event":"enroll","value":"openSettings"}"#)
    try await page.wait { $0.phone.timesSettingsOpened == 1 }
    await lab.receive(#"{"event":"biometryEnrolled","flag":true}"#)
    #expect(page.errors == [#"{"error":"biometryEnrolled: a phone needs a sensor and a passcode for that"}"#])
    await lab.receive(#"{"event":"registerNumber","value":""}"#)
    try await page.wait { $0.enrolment.title == "Device enrolled" }
    await lab.end()
  }

  @Test(
    "An event that is not one is refused by name, and nothing changes",
    arguments: [
      ("", "not an event: a JSON object with a name is expected"),
      ("[]", "not an event: a JSON object with a name is expected"),
      (#"{"event":"format disk"}"#, "unknown event: format disk"),
      (#"{"event":"hello","value":"x"}"#, "unknown event: hello"),
      (#"{"event":"tab","value":"admin"}"#, "tab: no such tab: admin"), (#"{"event":"tab"}"#, "tab: no such tab: "),
      (#"{"event":"challengeTab","value":"sms"}"#, "challengeTab: no such kind of code: sms"),
      (#"{"event":"challengeEntry","value":"1"}"#, "challengeEntry: a number is expected"),
      (#"{"event":"factor","value":"reset"}"#, "factor: no such option: reset"),
      (#"{"event":"factorRevoke"}"#, "factorRevoke: a number is expected"),
      (#"{"event":"play"}"#, "play: a number is expected"),
      (#"{"event":"play","number":-1}"#, "play: no such scenario: -1"),
      (#"{"event":"play","number":16}"#, "play: no such scenario: 16"),
      (#"{"event":"answer","number":7,"value":"approve"}"#, "answer: the prompt is not shown any more"),
      (#"{"event":"answer","number":7,"value":"-99"}"#, "answer: no such answer: -99"),
      (#"{"event":"passcode","flag":"yes"}"#, "not an event: a JSON object with a name is expected"),
      (#"{"event":"simulator"}"#, "simulator: true or false is expected"),
      (#"{"event":"code"}"#, "code: a text of at most 32 bytes is expected"),
      (#"{"event":"permission","value":"always"}"#, "permission: no such permission: always"),
    ])
  func refused(_ event: String, _ error: String) async throws {
    let (lab, page) = (try session(), Page())
    _ = await lab.open(page.take)
    try await page.wait { $0.enrolment.title == "Protect your account" }
    let before = try #require(page.received.last { $0.hasPrefix(#"{"state":"#) })
    await lab.receive(event)
    #expect(page.errors == [#"{"error":"\#(error)"}"#])
    // A further page is shown the same.
    let other = Page()
    _ = await lab.open(other.take)
    try await other.wait { _ in true }
    #expect(other.received.last { $0.hasPrefix(#"{"state":"#) } == before)
    await lab.end()
  }

  @Test("A scenario is played and its requests are drawn; one at a time")
  func plays() async throws {
    let (lab, page) = (try session(), Page())
    _ = await lab.open(page.take)
    backend.hold(true)
    await lab.receive(#"{"event":"play","number":0}"#)
    await lab.receive(#"{"event":"play","number":1}"#)
    backend.hold(false)
    #expect(page.errors == [#"{"error":"play: another scenario is being played"}"#])
    try await page.wait { $0.scenarios[0].status == "passed" }
    #expect(page.state?.sequence?.exchanges.map(\.operation) == ["mfa.enroll", "device.status"])
    // The stand-in approves everything.
    await lab.receive(#"{"event":"play","number":10}"#)
    try await page.wait { $0.scenarios[10].status == "failed" }
    await lab.end()
  }

  @Test("B-045 each screen has a place for errors that is read out, above what the user enters")
  func errorPlaces() throws {
    for (screen, entry) in [("enroll", "enroll-number"), ("signin", "signin-code"), ("settings", "settings-number")] {
      let error = try #require(LabPage.document.firstRange(of: #"id="\#(screen)-error" class="error" role="alert""#))
      let input = try #require(LabPage.document.firstRange(of: #"id="\#(entry)""#))
      #expect(error.lowerBound < input.lowerBound)
    }
  }

  @Test("What a code is sent with stands before its entry, which sends itself when it is full")
  func rememberBeforeCode() throws {
    let remember = try #require(LabPage.document.firstRange(of: #"id="challenge-remember""#))
    let entry = try #require(LabPage.document.firstRange(of: #"id="challenge-input""#))
    #expect(remember.lowerBound < entry.lowerBound)
  }

  @Test("A page that was closed receives nothing; the next one is shown everything, with the log")
  func reopened() async throws {
    let (lab, first, second) = (try session(), Page(), Page())
    let number = await lab.open(first.take)
    await lab.receive(#"{"event":"run","value":"checkSecurity"}"#)
    try await first.wait { $0.dashboard.result != nil }
    await lab.close(number)
    let count = first.received.count
    await lab.receive(#"{"event":"username","value":"grace"}"#)
    _ = await lab.open(second.take)
    try await second.wait { $0.username == "grace" }
    #expect(first.received.count == count)
    #expect(second.received.first?.hasPrefix(#"{"log":[{"#) == true)
    await lab.end()
  }

  @Test("10,000 events grow neither the log nor what the page is sent for one of them")
  func manyEvents() async throws {
    let (lab, page) = (try session(), Page())
    _ = await lab.open(page.take)
    for number in 0..<10_000 {
      await lab.receive(#"{"event":"username","value":"user\#(number)"}"#)
    }
    try await page.wait { $0.username == "user9999" }
    #expect(page.received.allSatisfy { $0.utf8.count < 64 << 10 })
    await lab.end()
  }
}
