internal import MFADomain
internal import ByteCoding
internal import MFAWire

/// The operation that reads notices.
struct NoticeController {
  let notices: Notices

  var operations: [Operation] { [list] }

  private var list: Operation {
    Operation(
      MFAOperations.notices, "The notices after a number, at most 100.",
      access: .session,
      refusals: [.invalidRequest, .sessionRequired, .secondFactorRequired, .boundElsewhere, .accountLocked]
    ) { request, caller in
      NoticeList(notices: try await notices.list(after: max(0, request.after ?? 0), for: caller).map(NoticeEntry.init))
    }
  }
}

extension NoticeEntry {
  init(_ notice: Notice) {
    self.init(
      sequence: notice.sequence, kind: notice.kind.rawValue, at: notice.at.wire, concerning: notice.concerning)
  }
}
