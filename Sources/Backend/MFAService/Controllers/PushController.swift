internal import ByteCoding
internal import Foundation
internal import MFADomain
internal import MFAWire

/// The operations for approving a sign-in on another device of the user.
struct PushController {
  let approval: PushApproval
  let addresses: PushAddresses

  var operations: [Operation] { [start, pending, answer, state, register, unregister] }

  private static let ofBearers: [RefusalCode] = [.sessionRequired, .boundElsewhere, .accountLocked]

  private var start: Operation {
    Operation(
      MFAOperations.startPush, "Asks the user's other devices to approve this sign-in.",
      access: .pendingSession, rateClass: .sensitive, refusals: Self.ofBearers + [.secondFactorRequired, .rateLimited]
    ) { _, caller in
      let push = try await approval.start(by: caller)
      return PushStarted(
        pushId: push.id.text, number: push.number,
        expiresIn: Int(PushChallenge.lifetime.components.seconds))
    }
  }

  private var pending: Operation {
    Operation(
      MFAOperations.pendingPushes, "The sign-ins that wait for the caller's approval.", access: .session,
      refusals: Self.ofBearers + [.secondFactorRequired]
    ) { _, caller in
      PushList(pushes: try await approval.pending(for: caller).map(PushEntry.init))
    }
  }

  private var answer: Operation {
    Operation(
      MFAOperations.answerPush, "Approves or denies a sign-in, signed with the key of the device.",
      access: .session, rateClass: .sensitive,
      refusals: Self.ofBearers + [.invalidRequest, .secondFactorRequired, .notFound, .authenticationFailed]
    ) { request, caller in
      let id = try UUID(wire: request.pushId)
      let signature = try BinaryField.signature(request.signature)
      let state = try await approval.answer(
        PushApproval.Answer(id: id, approves: request.approve, number: request.number ?? 0, signature: signature),
        by: caller)
      return PushState(state: state.rawValue)
    }
  }

  private var state: Operation {
    Operation(
      MFAOperations.pushState, "The state of the caller's push, with the tokens once approved.",
      access: .pendingSession, givesAccess: true,
      refusals: Self.ofBearers + [.invalidRequest, .notFound, .codeExpired]
    ) { request, caller in
      let (state, tokens) = try await approval.outcome(of: UUID(wire: request.pushId), for: caller)
      return PushState(state: state.rawValue, token: tokens?.access, refreshToken: tokens?.refresh)
    }
  }
}

extension PushController {
  private var register: Operation {
    Operation(
      MFAOperations.registerPush, "Registers the address of this device at the push service of its platform.",
      access: .session, refusals: Self.ofBearers + [.invalidRequest, .secondFactorRequired, .forbidden]
    ) { request, caller in
      PushAddressState(active: try await addresses.register(request.token, by: caller))
    }
  }

  private var unregister: Operation {
    Operation(
      MFAOperations.unregisterPush, "Removes the address of this device at the push service.", access: .session,
      refusals: Self.ofBearers + [.secondFactorRequired]
    ) { _, caller in
      try await addresses.unregister(by: caller)
      return PushAddressState(active: false)
    }
  }
}

extension UUID {
  fileprivate init(wire text: String) throws(InvalidValue) {
    guard let id = UUID(text: text) else { throw InvalidValue(field: "pushId", rule: "must be a UUID") }
    self = id
  }
}

extension PushEntry {
  init(_ push: PushChallenge) {
    self.init(
      pushId: push.id.text, userId: push.userID.text,
      nonce: Base64.encode(push.nonce), address: push.address, expiresAt: push.expiresAt.wire)
  }
}
