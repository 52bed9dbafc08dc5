import { sdp, sip, type TortureCase, usual, type Verdict } from './torture.ts'

const empty = ['Content-Length: 0', '', '']
const badRequestLine: Verdict = { status: 400, reason: 'Bad Request Line' }
const bad = (header: string): Verdict => ({ status: 400, reason: `Bad ${header} Header` })

/** `usual` with some of its lines in another form. */
function altered(method: string, callId: string, changes: Readonly<Record<string, string>>) {
  return usual(method, callId).map((line) => {
    const change = Object.entries(changes).find(([name]) => line.startsWith(`${name}:`))
    return change === undefined ? line : `${change[0]}: ${change[1]}`
  })
}

/** RFC 4475 §3.1.2: not legal. Where the RFC allows leniency, this stack refuses. */
export const invalidCases: readonly TortureCase[] = [
  {
    name: 'badinv01 (3.1.2.1): separators with nothing between them',
    verdict: bad('Via'),
    text: sip(
      'INVITE sip:user@example.com SIP/2.0',
      'To: sip:j.user@example.com',
      'From: sip:caller@example.net;tag=134161461246',
      'Max-Forwards: 7',
      'Call-ID: badinv01.0ha0isndaksdjasdf3234nas',
      'CSeq: 8 INVITE',
      'Via: SIP/2.0/UDP 192.0.2.15;;,;,,',
      'Contact: "Joe" <sip:joe@example.org>;;;;',
      'Content-Length: 112',
      'Content-Type: application/sdp',
      '',
      sdp,
    ),
  },
  {
    name: 'clerr (3.1.2.2): Content-Length larger than the datagram',
    verdict: bad('Content-Length'),
    text: sip(
      'INVITE sip:user@example.com SIP/2.0',
      ...usual('INVITE', 'clerr'),
      'Content-Type: application/sdp',
      'Content-Length: 9999',
      '',
      sdp,
    ),
  },
  {
    name: 'ncl (3.1.2.3): negative Content-Length',
    verdict: bad('Content-Length'),
    text: sip(
      'INVITE sip:user@example.com SIP/2.0',
      ...usual('INVITE', 'ncl'),
      'Content-Type: application/sdp',
      'Content-Length: -999',
      '',
      sdp,
    ),
  },
  {
    name: 'scalar02 (3.1.2.4): numbers beyond their range in a request',
    verdict: bad('CSeq'),
    text: sip(
      'REGISTER sip:example.com SIP/2.0',
      ...altered('REGISTER', 'scalar02', {
        CSeq: '36893488147419103232 REGISTER',
        'Max-Forwards': '300',
      }),
      'Expires: 10000000000000000000000000000000',
      'Contact: <sip:user@host129.example.com>;expires=280297596632815',
      ...empty,
    ),
  },
  {
    name: 'scalarlg (3.1.2.5): numbers beyond their range in a response',
    verdict: 'dropped',
    text: sip(
      'SIP/2.0 503 Service Unavailable',
      ...altered('INVITE', 'scalarlg', { CSeq: '9292394834772304023312 OPTIONS' }),
      'Retry-After: 949302838503028349304023988',
      'Warning: 1812 overture "In Progress"',
      ...empty,
    ),
  },
  {
    // The RFC allows to guess the end of the name where only one address can be meant.
    name: 'quotbal (3.1.2.6): a display name that never closes its quote',
    verdict: 'accepted',
    text: sip(
      'INVITE sip:user@example.com SIP/2.0',
      ...altered('INVITE', 'quotbal', { To: '"Mr. J. User <sip:j.user@example.com>' }),
      ...empty,
    ),
  },
  {
    name: 'ltgtruri (3.1.2.7): the Request-URI in angle brackets',
    verdict: { status: 400, reason: 'Bad Request-URI' },
    text: sip('INVITE <sip:user@example.com> SIP/2.0', ...usual('INVITE', 'ltgtruri'), ...empty),
  },
  {
    name: 'lwsruri (3.1.2.8): a blank inside the Request-URI',
    verdict: badRequestLine,
    text: sip('INVITE sip:user@example.com; lr SIP/2.0', ...usual('INVITE', 'lwsruri'), ...empty),
  },
  {
    name: 'lwsstart (3.1.2.9): several blanks between the parts of the request line',
    verdict: badRequestLine,
    text: sip('INVITE  sip:user@example.com  SIP/2.0', ...usual('INVITE', 'lwsstart'), ...empty),
  },
  {
    name: 'trws (3.1.2.10): blanks at the end of the request line',
    verdict: badRequestLine,
    text: sip(
      'OPTIONS sip:remote-target@example.com SIP/2.0  ',
      ...usual('OPTIONS', 'trws'),
      ...empty,
    ),
  },
  {
    name: 'escruri (3.1.2.11): headers in the Request-URI',
    verdict: { status: 400, reason: 'Bad Request-URI' },
    text: sip(
      'INVITE sip:user@example.com?Route=%3Csip:example.com%3E SIP/2.0',
      ...usual('INVITE', 'escruri'),
      ...empty,
    ),
  },
  {
    name: 'baddate (3.1.2.12): a Date in another time zone than GMT, which is not needed here',
    verdict: 'accepted',
    text: sip(
      'INVITE sip:user@example.com SIP/2.0',
      ...usual('INVITE', 'baddate'),
      'Date: Fri, 01 Jan 2010 16:00:00 EST',
      'Contact: <sip:caller@host5.example.net>',
      ...empty,
    ),
  },
  {
    name: 'regbadct (3.1.2.13): a Contact with URI headers but without angle brackets',
    verdict: bad('Contact'),
    text: sip(
      'REGISTER sip:example.com SIP/2.0',
      ...usual('REGISTER', 'regbadct'),
      'Contact: sip:user@example.com?Route=%3Csip:sip.example.com%3E',
      ...empty,
    ),
  },
  {
    name: 'badaspec (3.1.2.14): blanks between angle brackets and URI',
    verdict: bad('To'),
    text: sip(
      'OPTIONS sip:user@example.org SIP/2.0',
      ...altered('OPTIONS', 'badaspec', {
        From: '"Bell, Alexander" <sip:a.g.bell@example.com>;tag=43',
        To: '"Watson, Thomas" < sip:t.watson@example.org >',
      }),
      ...empty,
    ),
  },
  {
    // The RFC allows to be liberal here, too.
    name: 'baddn (3.1.2.15): a comma in an unquoted display name',
    verdict: 'accepted',
    text: sip(
      'OPTIONS sip:t.watson@example.org SIP/2.0',
      ...altered('OPTIONS', 'baddn', { From: 'Bell, Alexander <sip:a.g.bell@example.com>;tag=43' }),
      ...empty,
    ),
  },
  {
    name: 'badvers (3.1.2.16): a version of SIP that does not exist',
    verdict: { status: 505, reason: 'Version Not Supported' },
    text: sip(
      'OPTIONS sip:t.watson@example.org SIP/7.0',
      ...altered('OPTIONS', 'badvers', { Via: 'SIP/7.0/UDP c.example.com;branch=z9hG4bKkdjuw' }),
      ...empty,
    ),
  },
  {
    name: 'mismatch01 (3.1.2.17): CSeq names another method',
    verdict: { status: 400, reason: 'CSeq Method Mismatch' },
    text: sip(
      'OPTIONS sip:user@example.com SIP/2.0',
      ...altered('OPTIONS', 'mismatch01', { CSeq: '8 INVITE' }),
      ...empty,
    ),
  },
  {
    name: 'mismatch02 (3.1.2.18): the same with an unknown method',
    verdict: { status: 400, reason: 'CSeq Method Mismatch' },
    text: sip(
      'NEWMETHOD sip:user@example.com SIP/2.0',
      ...altered('NEWMETHOD', 'mismatch02', { CSeq: '8 INVITE' }),
      'Contact: <sip:caller@host5.example.net>',
      'Content-Type: application/sdp',
      'Content-Length: 112',
      '',
      sdp,
    ),
  },
  {
    name: 'bigcode (3.1.2.19): a status beyond 699',
    verdict: 'dropped',
    text: sip(
      'SIP/2.0 4294967301 better not break the receiver',
      ...usual('INVITE', 'bigcode'),
      ...empty,
    ),
  },
]
