internal import ByteCoding
public import MFAClient
public import MFAViewModels
internal import MFAWire
internal import SimulatedPhone

/// Plays scenarios: an app with the real view models on a simulated phone, against a real server.
public struct ScenarioPlayer: Sendable {
  /// Who plays. A scenario needs an account, a number and an App Attest key that were not used before.
  public struct Identity: Sendable, Hashable {
    /// The name of the account.
    public let username: String
    /// The number that receives codes, in E.164.
    public let phoneNumber: String
    /// The id of the device.
    public let deviceID: String

    /// Describes who plays.
    public init(username: String, phoneNumber: String, deviceID: String) {
      self.username = username
      self.phoneNumber = phoneNumber
      self.deviceID = deviceID
    }
  }

  private let backend: any MFABackend
  private let messages: any MessageSource
  private let log: EventLog

  /// Creates a player of one scenario.
  ///
  /// - Parameters:
  ///   - backend: The server, with an App Attest key of its own.
  ///   - messages: Where the phone's messages arrive.
  ///   - log: Receives a line for each prompt and request.
  public init(backend: any MFABackend, messages: any MessageSource, log: EventLog) {
    self.backend = backend
    self.messages = messages
    self.log = log
  }

  /// Plays `scenario` until an expectation is not met.
  public func play(_ scenario: Scenario, as identity: Identity) async -> ScenarioReport {
    let stage = Stage(scenario.phone, identity, backend: backend, messages: messages, log: log)
    var steps: [ScenarioReport.Step] = []
    for step in scenario.steps {
      do throws(ScenarioFailure) {
        try await stage.take(step)
        steps.append(ScenarioReport.Step(text: "\(step)", failure: nil))
      } catch {
        steps.append(ScenarioReport.Step(text: "\(step)", failure: error.reason))
        break
      }
    }
    return ScenarioReport(
      id: scenario.id, title: scenario.title, steps: steps, stepsLeft: scenario.steps.count - steps.count)
  }
}

/// What came of a scenario.
public struct ScenarioReport: Sendable, Hashable {
  /// A step that was taken.
  public struct Step: Sendable, Hashable {
    /// The step, as a sentence.
    public let text: String
    /// What was found instead; `nil` if the step was as expected.
    public let failure: String?
  }

  /// The number of the requirement.
  public let id: String
  /// What happens, for people.
  public let title: String
  /// The steps that were taken. Only the last one can have failed.
  public let steps: [Step]
  /// The number of steps after the one that failed.
  public let stepsLeft: Int

  /// The step that failed; `nil` if the scenario passed.
  public var failedStep: Step? { steps.last.flatMap { $0.failure == nil ? nil : $0 } }
  /// Whether all expectations were met.
  public var hasPassed: Bool { failedStep == nil }
}

/// Why a step is not as expected.
struct ScenarioFailure: Error {
  let reason: String
}
