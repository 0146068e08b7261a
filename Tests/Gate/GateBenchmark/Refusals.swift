import AppAttest
import ArgumentParser
import AttestGate
import ByteCoding
import Cryptography
import Foundation
import GateFixtures
import Wire
import SimulatedDevice

/// Measures whether the time of a refusal reveals that a key is registered.
struct Refusals: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "refusals",
    abstract: "Times refusals of wrong signatures under cached, registered and unknown keys, interleaved.",
    discussion: """
      Each kind is sent equally often, in random order, one at a time. The last column is the share of requests \
      that the best threshold on the time alone would separate from unknown keys: 50 % is a guess.
      """)

  /// The state of a key in the gate; `remembered` means cached.
  enum Kind: String, CaseIterable { case unknown, remembered, registered }

  @Option(help: "The number of refusals of each kind.")
  var count = 1000

  func validate() throws {
    guard count > 1 else { throw ValidationError("--count must be at least 2") }
  }

  func run() throws { try awaited { try await measure() } }

  private func measure() async throws {
    let fleet = try await Fleet(of: 2 * count)
    let signer = try fleet.bench.device(claims: AppClaims())
    let names = fleet.devices.map(\.keyID.base64)
    for headers in try fleet.mint(count) { _ = try await fleet.bench.gate.admit(AdmissionClaim(headers: headers)) }
    let orders = Kind.allCases.flatMap { kind in (0..<count).map { (kind, $0) } }.shuffled()
    var times: [Kind: [Double]] = [:]
    for (kind, index) in orders {
      var headers = try signer.headers(over: try fleet.bench.nonce(), count: 1)
      headers[.keyID] =
        switch kind {
        case .unknown: Base64.encode(SecureRandom.bytes(32))
        case .remembered: names[index]
        case .registered: names[count + index]
        }
      let claim = AdmissionClaim(headers: headers)
      let start = ContinuousClock.now
      let denial = await Self.denial(of: claim, at: fleet.bench.gate)
      times[kind, default: []].append((ContinuousClock.now - start) / .microseconds(1))
      guard denial?.code == .keyRefused else { throw FixtureError.unexpected }
    }
    let unknown = times[.unknown] ?? []
    for kind in Kind.allCases {
      let own = (times[kind] ?? []).sorted()
      let share = kind == .unknown ? "" : String(format: "  separated %.1f %%", 100 * Self.accuracy(own, unknown))
      print(
        "\(kind.rawValue.padding(toLength: 10, withPad: " ", startingAt: 0))"
          + String(format: "  median %.1f us", own[own.count / 2]) + share)
    }
  }

  private static func denial(of claim: AdmissionClaim, at gate: Gate) async -> Denial? {
    do throws(Denial) {
      _ = try await gate.admit(claim)
      return nil
    } catch {
      return error
    }
  }

  /// Returns the share of both samples that the best threshold puts on the right side.
  private static func accuracy(_ first: [Double], _ second: [Double]) -> Double {
    let all = (first.map { ($0, 1) } + second.map { ($0, -1) }).sorted { $0.0 < $1.0 }
    var (balance, widest) = (0, 0)
    for (_, side) in all {
      balance += side
      widest = max(widest, abs(balance))
    }
    return 0.5 + Double(widest) / Double(2 * first.count)
  }
}
