import ByteCoding
@testable import attest
import MFAClient
import MFAViewModels
import MFAWire
import Testing

@Suite("The scenarios", .timeLimit(.minutes(1)))
struct ScenarioTests {
  private func play(_ scenario: Scenario, _ backend: some MFABackend & MessageSource) async -> ScenarioReport {
    let player = ScenarioPlayer(backend: backend, messages: backend, log: EventLog(now: { Timestamp(seconds: 0) }))
    let identity = ScenarioPlayer.Identity(username: "ada", phoneNumber: "+15550101", deviceID: "phone-1")
    return await player.play(scenario, as: identity)
  }

  @Test("A-150 there are ten, in their order, and each has a title of its own")
  func seed() {
    #expect(
      Scenario.seed.map(\.id) == ["01", "02", "02", "03", "04", "05", "06", "07", "08", "09", "10"].map { "A-S\($0)" })
    #expect(Scenario.secondFactor.map(\.id) == ["B-080", "B-051", "A-223", "B-077", "B-053"])
    #expect(Set(Scenario.all.map(\.title)).count == Scenario.all.count)
  }

  @Test("A-S08 A-S09 A-S10 a server that approves everything is found out by the key that was deleted")
  func approvesEverything() async {
    for scenario in Scenario.seed {
      let report = await play(scenario, ApprovingBackend())
      let isJudged = ["A-S08", "A-S09", "A-S10"].contains(scenario.id)
      #expect(report.hasPassed != isJudged, "\(report)")
      guard isJudged else { continue }
      #expect(report.failedStep?.text == "expected: the server refuses the deleted key")
      #expect(report.failedStep?.failure == "the deleted key signs in")
    }
  }

  @Test("A server that never asks for the second factor fails each scenario of it")
  func neverAsks() async {
    for scenario in Scenario.secondFactor {
      let report = await play(scenario, ApprovingBackend())
      #expect(!report.hasPassed, "\(report)")
    }
  }

  @Test("The player's authenticator makes the codes of RFC 6238, each step once")
  func authenticator() {
    var kept = KeptFactor(secret: Array("12345678901234567890123456789012".utf8))
    // The last six of the eight digits of appendix B.
    #expect(kept.nextCode(at: Timestamp(seconds: 59)) == "119246")
    #expect(kept.nextCode(at: Timestamp(seconds: 1_111_111_109)) == "084774")
    #expect(kept.nextCode(at: Timestamp(seconds: 1_111_111_109)) == "062674")
    #expect(KeptFactor.secret("GEZDGNBVGY3TQOJQ") == Array("1234567890".utf8))
    #expect(KeptFactor.secret("gez1") == nil)
  }

  @Test("A server that refuses everything fails each scenario at the enrolment, with its text")
  func refusesEverything() async {
    struct RefusingBackend: MFABackend, MessageSource {
      func codes(to number: String) -> [String] { [] }
      func call<Request, Response>(
        _ operation: WireOperation<Request, Response>, _ request: Request, token: String?
      ) async throws(NetworkError) -> Response {
        throw .refused(BackendRefusal(ErrorBody(message: "Not allowed", code: "forbidden", requestId: "r")))
      }
    }
    for scenario in Scenario.all {
      let report = await play(scenario, RefusingBackend())
      #expect(report.failedStep?.failure?.contains("Not allowed") == true, "\(report)")
    }
  }

  @Test("A JUnit report has a case for each scenario, and its text cannot end the markup")
  func junit() {
    let failed = ScenarioReport(
      id: "A-S01", title: "<\"&\u{1B}",
      steps: [ScenarioReport.Step(text: "a", failure: nil), .init(text: "b", failure: "]]>")],
      stepsLeft: 1)
    let passed = ScenarioReport(id: "A-S02", title: "t", steps: [.init(text: "a", failure: nil)], stepsLeft: 0)
    let document = JUnitReport.document([
      JUnitReport.Case(report: failed, way: "rest", duration: .milliseconds(1004)),
      JUnitReport.Case(report: passed, way: "socket", duration: .milliseconds(20)),
    ])
    #expect(
      document == """
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuite name="device lab" tests="2" failures="1" time="1.024">
          <testcase classname="rest" name="A-S01 &lt;&quot;&amp;\u{FFFD}" time="1.004">
            <failure message="]]&gt;">b</failure>
          </testcase>
          <testcase classname="socket" name="A-S02 t" time="0.020"/>
        </testsuite>

        """)
  }
}
