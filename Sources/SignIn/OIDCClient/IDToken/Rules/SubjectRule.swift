/// Section 2: there is a subject of at most 255 characters. Section 12.2: a refresh keeps it.
struct SubjectRule: IDTokenRule {
  let statement = "sub names the user, the same as before"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    guard let subject = token.claims.subject, (1...255).contains(subject.utf8.count),
      expected.subject == nil || expected.subject == subject
    else { throw .subject }
  }
}
