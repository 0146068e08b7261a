internal import ByteCoding
internal import MFADomain
internal import MFAWire

/// The operations that recover an account after the loss of all devices, or stop a recovery.
struct RecoveryController {
  let recovery: AccountRecovery
  let administration: Administration

  var operations: [Operation] { [start, status, stop, own, cancel, list, cancelOfAnother] }

  private static let ofBearers: [RefusalCode] = [
    .invalidRequest, .sessionRequired, .secondFactorRequired, .boundElsewhere, .accountLocked,
  ]

  private var start: Operation {
    Operation(
      MFAOperations.startRecovery,
      "Starts the recovery of an account with a backup code. A device can be enrolled after the wait.",
      access: .attested, rateClass: .sensitive, sendsMessages: true,
      refusals: [.invalidRequest, .codeInvalid, .rateLimited, .accountLocked, .recoveryPending]
    ) { request, caller in
      let start = try await recovery.start(Username(request.username), CodeGuess(request.code), by: caller)
      return RecoveryStarted(
        recoveryToken: start.token, state: start.state.rawValue, readyAt: start.recovery.readyAt.wire,
        expiresAt: start.recovery.expiresAt.wire, backupCodesRemaining: start.codesRemaining)
    }
  }

  private var status: Operation {
    Operation(
      MFAOperations.recoveryStatus, "The state of a recovery that this app instance started.",
      access: .attested, refusals: [.invalidRequest, .codeInvalid]
    ) { request, caller in
      let (found, state) = try await recovery.recovery(of: request.recoveryToken.checked("recoveryToken"), for: caller)
      return RecoveryStatus(state: state.rawValue, readyAt: found.readyAt.wire, expiresAt: found.expiresAt.wire)
    }
  }

  private var stop: Operation {
    Operation(
      MFAOperations.stopRecovery,
      "Stops the recovery of an account with the code sent to its phone numbers and e-mail address.", access: .attested,
      rateClass: .sensitive, refusals: [.invalidRequest, .codeInvalid, .rateLimited, .accountLocked]
    ) { request, caller in
      try await recovery.stop(Username(request.username), CodeGuess(request.code), by: caller)
      return RevokeResponse(message: "Recovery stopped")
    }
  }

  private var own: Operation {
    Operation(
      MFAOperations.ownRecovery, "The open recovery of the caller's own account.", access: .session,
      refusals: Self.ofBearers
    ) { _, caller in
      OwnRecovery(recovery: try await recovery.open(for: caller).map(OpenRecovery.init))
    }
  }

  private var cancel: Operation {
    Operation(
      MFAOperations.cancelRecovery, "Stops the recovery of the caller's own account.",
      access: .session, refusals: Self.ofBearers + [.notFound]
    ) { _, caller in
      try await recovery.cancel(by: caller)
      return RevokeResponse(message: "Recovery stopped")
    }
  }

  /// The number of recoveries in one response.
  private static let page = 100

  private static let ofAdmins = ofBearers + [.forbidden, .freshProofRequired, .notFound]

  private var list: Operation {
    Operation(
      MFAOperations.recoveries, "Lists open recoveries by username, up to 100 per response.",
      access: .admin, refusals: Self.ofAdmins
    ) { request, caller in
      let found = try await administration.recoveries(
        after: request.after, atMost: Self.page, by: .session(caller))
      return RecoveryList(
        recoveries: found.map { .init(username: $0.user.username.text, recovery: OpenRecovery($0.recovery)) },
        next: found.count < Self.page ? nil : found.last.map { Administration.cursor(after: $0.user) })
    }
  }

  private var cancelOfAnother: Operation {
    Operation(
      MFAOperations.cancelAccountRecovery, "Stops the recovery of an account.", access: .admin,
      refusals: Self.ofAdmins
    ) { request, caller in
      try await administration.cancelRecovery(Username(request.username), by: .session(caller))
      return RevokeResponse(message: "Recovery stopped")
    }
  }
}

extension OpenRecovery {
  fileprivate init(_ recovery: Recovery) {
    self.init(
      startedAt: recovery.startedAt.wire, readyAt: recovery.readyAt.wire, expiresAt: recovery.expiresAt.wire,
      address: recovery.address, attested: recovery.binding != .debugBuild)
  }
}
