internal import ByteCoding
internal import Glibc
internal import Locking
public import Logging
public import MFADomain
internal import Metrics
internal import Observability
public import ServiceLifecycle

/// Copies new entries of the history to a file, to a syslog receiver, and to a receiver of webhooks.
///
/// Each entry is exported at least once: after a failure or the end of a process, the last batch may come again. The
/// file has its position next to it, so each machine has a complete copy; the positions of syslog and of webhooks are in
/// the database, so of several backends one sends at a time. A position has the hash of its entry: after a restore of
/// the database, the export continues where the restored history ends.
public final class AuditExporter: Service {
  /// Where entries go.
  public struct Settings: Sendable, Hashable {
    /// The path of the file; `nil` for none.
    public var file: String?
    /// The size in bytes from which the file is rotated; `nil` for none.
    public var largestFile: Int?
    /// The number of rotated files.
    public var keptFiles: Int
    /// The receiver; `nil` for none.
    public var syslog: SyslogTarget?
    /// The name of the facility, as `SyslogMessage.facilities` has it.
    public var facility: String
    /// The receiver of webhooks; `nil` for none.
    public var webhook: WebhookTarget?

    /// Creates settings.
    public init(
      file: String? = nil, largestFile: Int? = nil, keptFiles: Int = 10, syslog: SyslogTarget? = nil,
      facility: String = "authpriv", webhook: WebhookTarget? = nil
    ) {
      self.webhook = webhook
      self.file = file
      self.largestFile = largestFile
      self.keptFiles = keptFiles
      self.syslog = syslog
      self.facility = facility
    }
  }

  /// The times of an export.
  public struct Schedule: Sendable {
    /// The time between two looks for new entries.
    public var interval = Duration.seconds(1)
    /// The time after a failure.
    public var pause = Duration.seconds(5)
    /// The time in which a syslog receiver must acknowledge one batch.
    public var patience = Duration.seconds(10)
    /// Creates the default values.
    public init() {}
  }

  private let exports: AuditExports
  private let schedule: Schedule
  private let logger: Logger
  /// The settings, and how often they were set: a reload opens the file again.
  private let current = LockedValue((settings: Settings(), generation: 0))

  /// Creates the exporter, which exports nothing before `apply`.
  public init(_ exports: AuditExports, schedule: Schedule = Schedule(), logger: Logger) {
    self.exports = exports
    self.schedule = schedule
    self.logger = logger
  }

  /// Exports by `settings` from now on. Opens the file again, also if nothing has changed: it may have been moved.
  public func apply(_ settings: Settings) {
    current.withLock { $0 = (settings, $0.generation + 1) }
  }

  /// Whether the file can be written, for a check before a start.
  ///
  /// - Throws: `AuditExportFault`
  public static func check(_ settings: Settings) throws(AuditExportFault) {
    guard let file = settings.file else { return }
    var status = stat()
    if lstat(file, &status) == 0 {
      guard status.st_mode & S_IFMT == S_IFREG, access(file, W_OK) == 0 else {
        throw AuditExportFault(reason: "\(file) is not a file that this user can write")
      }
    }
    let folder = file.lastIndex(of: "/").map { String(file[..<$0]) } ?? "."
    guard access(folder.isEmpty ? "/" : folder, W_OK | X_OK) == 0 else {
      throw .system("the folder of \(file) cannot be written", errno)
    }
  }

  public func run() async throws {
    await cancelWhenGracefulShutdown {
      await withDiscardingTaskGroup { group in
        group.addTask { await self.exportToFile() }
        group.addTask { await self.exportToSyslog() }
        group.addTask { await self.exportToWebhook() }
      }
    }
    // The entries of the last requests.
    await exportToFile(isLast: true)
    await exportToSyslog(isLast: true)
    // A message under way would delay the end: another process sends it, or the next start.
    try? await exports.release(Self.webhookName)
  }

  // MARK: File

  private func exportToFile(isLast: Bool = false) async {
    var (file, generation): (AuditFile?, Int) = (nil, -1)
    var state = ExportState(target: "file", logger)
    repeat {
      let now = current.withLock(\.self)
      if generation != now.generation { (file, generation) = (nil, now.generation) }
      guard let path = now.settings.file else {
        if isLast { return }
        await rest(isLast, schedule.interval)
        continue
      }
      do {
        let open = try file ?? AuditFile(path: path, largest: now.settings.largestFile, kept: now.settings.keptFiles)
        if file == nil { file = open }
        let count = try await copy(to: open)
        state.succeeded(count)
        if count < AuditExports.batch { await rest(isLast, schedule.interval) }
      } catch {
        // The end of this process is no failure: the last batch follows.
        if Task.isCancelled { return }
        file = nil
        state.failed(error)
        if isLast { return }
        await rest(isLast, schedule.pause)
      }
      if isLast { return }
    } while !Task.isCancelled
  }

  /// Writes the next entries, and returns their number.
  private func copy(to file: AuditFile) async throws -> Int {
    guard let position = file.position else {
      // A new export begins with the next entry.
      file.begin(after: try await exports.end())
      return 0
    }
    guard let entries = try await exports.entries(after: position) else {
      // The last entry that the file shares with the history, the end of a restored history, or its end.
      let common = try await exports.last(of: file.positions())
      let place = if let common { common } else { try await exports.end() }
      warn(of: "file", lost: position, isComplete: common != nil)
      file.begin(after: place)
      return try await copy(to: file, after: place)
    }
    try file.write(entries)
    return entries.count
  }

  private func copy(to file: AuditFile, after position: AuditPosition) async throws -> Int {
    let entries = try await exports.entries(after: position) ?? []
    try file.write(entries)
    return entries.count
  }

  /// Logs that the history does not have the last exported entry any more.
  ///
  /// - Parameter isComplete: whether it is known which entries are new.
  private func warn(of target: String, lost: AuditPosition, isComplete: Bool) {
    let reason = "the history was restored or changed: it does not have the last exported entry"
    logger.warning(
      "audit export begins again",
      metadata: [
        "target": "\(target)", "entry": .number(lost.sequence),
        "reason": "\(reason + (isComplete ? "" : "; audit export prints entries that are missing"))",
      ])
  }

  // MARK: Syslog

  private func exportToSyslog(isLast: Bool = false) async {
    var (sender, generation): (SyslogSender?, Int) = (nil, -1)
    var state = ExportState(target: "syslog", logger)
    repeat {
      let now = current.withLock(\.self)
      if generation != now.generation {
        await sender?.close()
        sender = now.settings.syslog.map { SyslogSender($0, patience: schedule.patience) }
        generation = now.generation
      }
      guard let open = sender else {
        if isLast { return }
        await rest(isLast, schedule.interval)
        continue
      }
      do {
        let count = try await send(by: open, facility: now.settings.facility)
        state.succeeded(count)
        if count < AuditExports.batch { await rest(isLast, schedule.interval) }
      } catch {
        // The end of this process is no failure of the receiver: the last batch follows.
        if Task.isCancelled { break }
        state.failed(error)
        if isLast { break }
        await rest(isLast, schedule.pause)
      }
      if isLast {
        try? await exports.release(Self.syslogName)
        break
      }
    } while !Task.isCancelled
    await sender?.close()
  }

  /// The name of the export in the database.
  private static let syslogName = "syslog"

  private func send(by sender: SyslogSender, facility: String) async throws -> Int {
    guard let entries = try await next(of: Self.syslogName), let last = entries.last else { return 0 }
    let form = SyslogMessage(
      facility: SyslogMessage.facilities[facility] ?? 10, host: SyslogMessage.hostName(Self.machineName),
      process: getpid())
    try await sender.send(entries.map { form.text($0.entry, hash: $0.hash) })
    try await exports.advance(Self.syslogName, to: last)
    return entries.count
  }

  /// The next entries of an export whose position is in the database; `nil` if another process continues it.
  private func next(of name: String) async throws -> [AuditExports.Entry]? {
    let batch = try await exports.next(of: name)
    if let lost = batch?.lost { warn(of: name, lost: lost, isComplete: false) }
    return batch?.entries
  }

  // MARK: Webhooks

  private static let webhookName = "webhook"

  private func exportToWebhook() async {
    var (hook, generation): (AuditWebhook?, Int) = (nil, -1)
    var state = ExportState(target: "webhook", logger)
    var refusals = Refusals()
    while !Task.isCancelled {
      let now = current.withLock(\.self)
      if generation != now.generation {
        // A reload without a change keeps the count of refusals.
        if hook?.target != now.settings.webhook { hook = now.settings.webhook.map(AuditWebhook.init) }
        generation = now.generation
      }
      guard let open = hook else {
        await rest(false, schedule.interval)
        continue
      }
      do {
        let count = try await post(by: open, &refusals)
        state.succeeded(count)
        await rest(false, refusals.count > 0 ? schedule.pause * refusals.count : schedule.interval)
      } catch {
        // The end of this process is no failure of the receiver.
        if Task.isCancelled { return }
        state.failed(error)
        await rest(false, schedule.pause)
      }
    }
  }

  /// The entry that the receiver refuses, and how often it has.
  private struct Refusals {
    var sequence: Int64 = 0
    var count = 0
  }

  /// Sends the next entries in their order, as many as fit into the time of a batch. Returns the number of those that
  /// the receiver has taken.
  private func post(by hook: AuditWebhook, _ refusals: inout Refusals) async throws -> Int {
    guard let entries = try await next(of: Self.webhookName), !entries.isEmpty else { return 0 }
    let deadline = ContinuousClock.now + AuditWebhook.batchTime
    var done: AuditExports.Entry?
    var count = 0
    do {
      for entry in entries where ContinuousClock.now < deadline && !Task.isCancelled {
        let sequence = entry.entry.sequence
        if hook.concerns(entry.entry) {
          switch try await hook.send(entry, at: .now()) {
          case .delivered: count += 1
          case .refused(let reason):
            refusals = Refusals(sequence: sequence, count: refusals.sequence == sequence ? refusals.count + 1 : 1)
            guard noteRefusal(of: sequence, refusals.count, by: hook, reason) else {
              if let done { try await exports.advance(Self.webhookName, to: done) }
              return count
            }
          }
        }
        refusals = Refusals()
        done = entry
      }
    } catch {
      if let done { try? await exports.advance(Self.webhookName, to: done) }
      throw error
    }
    if let done { try await exports.advance(Self.webhookName, to: done) }
    return count
  }

  /// Logs a refusal. Returns whether the message is given up.
  private func noteRefusal(of sequence: Int64, _ count: Int, by hook: AuditWebhook, _ reason: String) -> Bool {
    let isLast = count >= AuditWebhook.mostRefusals
    Counter(label: "mfa_audit_export_failures_total", dimensions: [("target", "webhook")]).increment()
    let metadata: Logger.Metadata = [
      "receiver": "\(hook.target.place)", "entry": .number(sequence), "reason": "\(reason)",
    ]
    if isLast {
      logger.error("webhook message given up: the receiver refused it each time", metadata: metadata)
    } else {
      logger.notice("webhook message refused: it will be sent again", metadata: metadata)
    }
    return isLast
  }

  private static let machineName: String = {
    var bytes = [CChar](repeating: 0, count: 256)
    guard gethostname(&bytes, bytes.count - 1) == 0 else { return "" }
    return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }()

  private func rest(_ isLast: Bool, _ time: Duration) async {
    if !isLast { try? await Task.sleep(for: time) }
  }
}

/// The log and the figures of one export: a failure is logged once, and again when it is over.
private struct ExportState {
  private let target: String
  private let logger: Logger
  private var failure: String?

  init(target: String, _ logger: Logger) {
    self.target = target
    self.logger = logger
  }

  mutating func succeeded(_ count: Int) {
    if failure != nil, count > 0 { logger.notice("audit export resumed", metadata: ["target": "\(target)"]) }
    if count > 0 {
      failure = nil
      Counter(label: "mfa_audit_exported_total", dimensions: [("target", target)]).increment(by: Int64(count))
    }
  }

  mutating func failed(_ error: any Error) {
    let reason = (error as? AuditExportFault)?.reason ?? (error as? MFAStoreError)?.reason ?? "\(error)"
    Counter(label: "mfa_audit_export_failures_total", dimensions: [("target", target)]).increment()
    guard reason != failure else { return }
    failure = reason
    logger.error("audit export failed", metadata: ["target": "\(target)", "reason": "\(reason)"])
  }
}
