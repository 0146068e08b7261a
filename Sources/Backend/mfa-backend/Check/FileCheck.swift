internal import Commands
internal import ConfigurationEngine
internal import MFADelivery
internal import MFAService

/// Reads the files that a configuration names, as a start would.
enum FileCheck {
  /// Adds a fault for each file that cannot be used, and for a database URL that libpq would refuse.
  static func judged(
    _ diagnostics: ConfigurationDiagnostics<BackendSettings>
  ) -> ConfigurationDiagnostics<BackendSettings> {
    guard let settings = diagnostics.settings else { return diagnostics }
    var result = diagnostics
    var known: Set<String> = []
    func judge(_ key: String, _ body: () throws -> Void) {
      do { try body() } catch {
        let fault = Failure(of: error)
        // A root file is judged by its own key, and then read again for what needs it.
        guard known.insert(fault.message).inserted else { return }
        let place = key + ": "
        result = result.refusing(
          key, fault.message.hasPrefix(place) ? String(fault.message.dropFirst(place.count)) : fault.message,
          hint: fault.hint)
      }
    }
    judge("database") { try settings.database.judge() }
    judge("database_password_file") { try settings.database.judgePassword() }
    judge("keys_file") { _ = try settings.database.keys() }
    if settings.gate.source.isFile {
      judge("gate.jwks") { try InputFile.require(settings.gate.keys, "the file with the gate's keys") }
    }
    if let file = settings.gate.authorityFile {
      judge("gate.ca_file") { try InputFile.require(file, "the gate's root file") }
    }
    if case .template(let request) = settings.texting {
      judgeTextRequest(request, of: settings, judge)
    } else {
      judge("sms.token_file") { _ = try settings.smsProvider() }
    }
    if let file = settings.mail?.authorityFile {
      judge("email.ca_file") { try InputFile.require(file, "the mail server's root file") }
    }
    if let file = settings.mail?.passwordFile {
      judge("email.password_file") { _ = try InputFile.secretLine(file, "the secret file") }
    }
    if let file = settings.mail?.tokenFile {
      judge("email.token_file") { _ = try InputFile.secretLine(file, "the secret file") }
    }
    if let file = settings.push.apns?.authorityFile {
      judge("push.apns.ca_file") { try InputFile.require(file, "the root file of APNs") }
    }
    if let apns = settings.push.apns { judge("push.apns.key_file") { _ = try settings.provider(apns) } }
    if let file = settings.push.fcm?.authorityFile {
      judge("push.fcm.ca_file") { try InputFile.require(file, "the root file of FCM") }
    }
    if let fcm = settings.push.fcm { judge("push.fcm.service_account_file") { _ = try settings.provider(fcm) } }
    judge("messages.templates") { _ = try settings.messageTemplates() }
    judge("audit.file") {
      do throws(AuditExportFault) { try AuditExporter.check(.init(settings.audit)) } catch {
        throw Failure(.configuration, error.reason, hint: "name a file in a folder that this user can write to")
      }
    }
    if let file = settings.audit.authorityFile {
      judge("audit.syslog_ca_file") { try InputFile.require(file, "the syslog receiver's root file") }
    }
    if let file = settings.audit.webhook?.authorityFile {
      judge("webhooks.ca_file") { try InputFile.require(file, "the root file of webhooks") }
    }
    if let webhook = settings.audit.webhook { judge("webhooks.secret_file") { try webhook.requireFiles() } }
    judge("oidc.ca_file") { _ = try settings.provider?.tokens() }
    return result
  }

  private static func judgeTextRequest(
    _ request: BackendSettings.TextRequest, of settings: BackendSettings,
    _ judge: (_ key: String, _ body: () throws -> Void) -> Void
  ) {
    if let file = request.authorityFile {
      judge("sms.http.ca_file") { try InputFile.require(file, "the SMS server's root file") }
    }
    var key = "sms.http.token_file"
    do { _ = try request.template() } catch { key = error.key }
    judge(key) { _ = try settings.smsProvider() }
  }
}
