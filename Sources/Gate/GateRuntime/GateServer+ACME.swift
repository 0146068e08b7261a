internal import ACME
internal import AttestGate
internal import ByteCoding
internal import Commands
internal import Cryptography
internal import GateService
internal import Locking
internal import Logging
internal import Observability
internal import Settings
internal import TransportEngine

extension GateServer {
  /// Obtains certificates and renews them, if the settings of `composition` say so; runs until the task is cancelled.
  ///
  /// A file that cannot be read, or a lack of descriptors, is no reason to stop: the preparation is repeated.
  ///
  /// - Parameter previous: The task of earlier settings, cancelled. It ends first, because both answer challenges.
  func certificateTask(
    by composition: GateComposition, after previous: Task<Void, Never>? = nil
  ) -> Task<Void, Never>? {
    guard let acme = composition.settings.tls.acme else { return nil }
    return Task { [self] in
      await previous?.value
      while !Task.isCancelled {
        do throws(Failure) {
          let keeper = try await keeper(acme, composition.settings)
          memory.managed.notePrepared()
          return await keeper.run()
        } catch {
          let pause = keeperPause.withLock(\.self)
          memory.managed.noteUnprepared(error, until: .now().advanced(by: pause))
          logger.error(
            "certificate renewal not prepared: it will be retried",
            metadata: ["fault": "\(error.report(separator: "; "))", "retry_seconds": .number(pause.components.seconds)])
          try? await Task.sleep(for: pause)
        }
      }
    }
  }

  /// Reads the certificate that an earlier process or another gate stored, so that the listener has it from its first
  /// connection on. A failure is not fatal: it is read again later.
  static func loadManagedCertificate(_ settings: GateSettings, _ memory: SharedState, _ logger: Logger) async {
    memory.managed.configure(settings)
    guard let acme = settings.tls.acme else { return }
    do {
      let order = try acme.orderSettings()
      if let stored = try await CertificateKeeper.stored(order, in: settings.certificateStorage(memory.store)) {
        memory.managed.adopt(stored)
      } else {
        logger.warning(
          "no certificate yet: TLS handshakes fail until the first one arrives",
          metadata: ["names": "\(acme.domains.joined(separator: " "))", "directory": "\(acme.directory)"])
      }
    } catch {
      logger.error("stored certificate not read", metadata: ["reason": "\(error)"])
    }
  }

  private func keeper(
    _ acme: GateSettings.TLS.ACME, _ settings: GateSettings
  ) async throws(Failure) -> CertificateKeeper {
    let (order, transport) = try await fileReads.run {
      () throws(Failure) -> (CertificateOrderSettings, EngineTransport) in
      let order = try acme.orderSettings()
      do throws(ACMEError) {
        return (order, try EngineTransport(authorityFile: acme.caFile))
      } catch {
        throw Failure(.configuration, "tls.acme: \(error)", hint: error.hint)
      }
    }
    let (managed, logger) = (memory.managed, logger)
    return CertificateKeeper(
      order, client: ACMEClient(directory: acme.directory, transport: transport),
      storage: settings.certificateStorage(memory.store),
      listener: CertificateKeeper.Listener(
        serve: { [weak self] certificate in
          managed.adopt(certificate)
          return await self?.inTurn { await $0.serveManagedCertificate() } ?? true
        },
        answer: { managed.answer($0, logger: logger) },
        records: acme.proof.records,
        note: { event in
          managed.count(event)
          CertificateLog(logger: logger).write(event)
        },
        status: { managed.note($0) }))
  }

  /// Presents the certificate of `memory.managed` on new connections, and returns whether that worked. Open ones are
  /// not affected.
  private func serveManagedCertificate() async -> Bool {
    let composition = generation.composition
    // A reload may have chosen certificate files in the meantime.
    guard composition.settings.tls.acme != nil else { return true }
    do throws(Failure) {
      let tls = try await fileReads.run { () throws(Failure) in try composition.tls() }
      try await serve(generation, tls: tls)
      generation.served = ServedCertificates(tls, from: generation.certificates)
      generation.served.warn(logger, at: .now())
      return true
    } catch {
      logger.error(
        "certificate not served: the old one stays active, and serving will be retried",
        metadata: ["fault": "\(error.report(separator: "; "))"])
      return false
    }
  }
}

/// Writes the events of certificates to the log.
struct CertificateLog: Sendable {
  let logger: Logger

  func write(_ event: CertificateEvent) {
    switch event {
    case .accountMade(let url): logger.notice("ACME account registered", metadata: ["account": "\(url)"])
    case .ordering(let end):
      logger.info("certificate ordered", metadata: end.map { ["replaces_until": "\($0)"] } ?? [:])
    case .obtained(let certificate, let byOtherGate, let renewal):
      logger.notice(
        byOtherGate ? "certificate of another gate adopted" : "certificate obtained",
        metadata: [
          "names": "\(certificate.names.joined(separator: " "))", "not_after": "\(certificate.notAfter)",
          "renewal": "\(renewal.wholeSecond)",
        ])
    case .failed(let error, let attempts, let retry, let hasCertificate):
      logger.error(
        hasCertificate ? "certificate renewal failed: the old certificate stays active" : "certificate order failed",
        metadata: [
          "code": "\(error.code)", "reason": "\(error)", "hint": "\(error.hint)", "attempts": .number(attempts),
          "retry": "\(retry.wholeSecond)",
        ])
    case .learned(let window, let renewal):
      var metadata: Logger.Metadata = [
        "from": "\(window.start)", "to": "\(window.end)", "renewal": "\(renewal.wholeSecond)",
      ]
      if let explanation = window.explanation { metadata["explanation"] = "\(explanation)" }
      logger.info("ACME server suggests a time for the renewal", metadata: metadata)
    case .clocksDiffer(let difference):
      logger.warning(
        "the clock of this machine differs from the ACME server's: certificates may seem invalid",
        metadata: ["difference_seconds": .number(difference.components.seconds), "hint": "set the clock (timedatectl)"])
    case .recordNotRemoved(let error):
      logger.warning(
        "ACME challenge record not removed: it is worthless and may stay",
        metadata: ["reason": "\(error)", "hint": "\(error.hint)"])
    case .storageFailed(let error):
      logger.error(
        "certificate storage unavailable: it will be retried",
        metadata: ["reason": "\(error)", "hint": "\(error.hint)"])
    case .damaged(let error):
      logger.error(
        "stored certificate damaged: the next order replaces it",
        metadata: ["reason": "\(error)", "hint": "\(error.hint)"])
    }
  }
}
