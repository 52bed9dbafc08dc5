import { sdp, sip, type TortureCase, usual } from './torture.ts'

const empty = ['Content-Length: 0', '', '']
const without = (lines: readonly string[], ...names: readonly string[]) =>
  lines.filter((line) => !names.some((name) => line.startsWith(`${name}:`)))

/**
 * RFC 4475 §3.2 to §3.4: well formed, and wrong or unusual in what it says. Much of it is answered
 * by the layers above (420, 415, 406, 483, the registrar's answers): here it only has to be read.
 */
export const semanticCases: readonly TortureCase[] = [
  {
    name: 'badbranch (3.2.1): the magic cookie and nothing after it',
    verdict: { status: 400, reason: 'Bad Via Header' },
    text: sip(
      'OPTIONS sip:user@example.com SIP/2.0',
      'Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK',
      ...without(usual('OPTIONS', 'badbranch'), 'Via'),
      ...empty,
    ),
  },
  {
    name: 'insuf (3.3.1): no Call-ID, From or To',
    verdict: { status: 400, reason: 'Missing From Header' },
    text: sip(
      'INVITE sip:user@example.com SIP/2.0',
      ...without(usual('INVITE', 'insuf'), 'Call-ID', 'From', 'To'),
      ...empty,
    ),
  },
  {
    name: 'unkscm (3.3.2): a Request-URI of an unknown scheme',
    verdict: { status: 416, reason: 'Unsupported URI Scheme' },
    text: sip(
      'OPTIONS nobodyKnowsThisScheme:totallyopaquecontent SIP/2.0',
      ...usual('OPTIONS', 'unkscm'),
      ...empty,
    ),
  },
  {
    name: 'novelsc (3.3.3): a Request-URI of a known scheme that is not for SIP',
    verdict: { status: 416, reason: 'Unsupported URI Scheme' },
    text: sip(
      'OPTIONS soap.beep://192.0.2.103:3002 SIP/2.0',
      ...usual('OPTIONS', 'novelsc'),
      ...empty,
    ),
  },
  {
    name: 'unksm2 (3.3.4): unknown schemes in From, To and Contact',
    verdict: 'accepted',
    text: sip(
      'REGISTER sip:example.com SIP/2.0',
      ...without(usual('REGISTER', 'unksm2'), 'From', 'To'),
      'From: <http://www.example.com>;tag=aabb',
      'To: isbn:2983792873',
      'Contact: <name:John_Smith>',
      ...empty,
    ),
  },
  {
    name: 'bext01 (3.3.5): unknown option tags in Require and Proxy-Require',
    verdict: 'accepted',
    text: sip(
      'OPTIONS sip:user@example.com SIP/2.0',
      ...usual('OPTIONS', 'bext01'),
      'Require: nothingSupportsThis, nothingSupportsThisEither',
      'Proxy-Require: noProxiesSupportThis, norDoAnyProxiesSupportThis',
      ...empty,
    ),
  },
  {
    name: 'invut (3.3.6): an unknown body type',
    verdict: 'accepted',
    text: sip(
      'INVITE sip:user@example.com SIP/2.0',
      ...usual('INVITE', 'invut'),
      'Content-Type: application/unknownformat',
      'Content-Length: 40',
      '',
      '<audio>\r\n <pcmu port="443"/>\r\n</audio>\r\n',
    ),
  },
  {
    name: 'regaut01 (3.3.7): an unknown authorization scheme',
    verdict: 'accepted',
    text: sip(
      'REGISTER sip:example.com SIP/2.0',
      ...usual('REGISTER', 'regaut01'),
      'Authorization: NoOneKnowsThisScheme opaque-data=here',
      ...empty,
    ),
  },
  {
    name: 'multi01 (3.3.8): several values where one is allowed',
    verdict: { status: 400, reason: 'Multiple CSeq Headers' },
    text: sip(
      'INVITE sip:user@company.com SIP/2.0',
      'Contact: <sip:caller@host25.example.net>',
      'Via: SIP/2.0/UDP 192.0.2.25;branch=z9hG4bKkdjuw',
      'Max-Forwards: 70',
      'CSeq: 5 INVITE',
      'Call-ID: multi01.98asdh@192.0.2.1',
      'CSeq: 59 INVITE',
      'Call-ID: multi01.98asdh@192.0.2.2',
      'From: sip:caller@example.com;tag=3413415',
      'To: sip:user@example.com',
      'To: sip:other@example.net',
      'From: sip:caller@example.net;tag=2923420123',
      'Max-Forwards: 5',
      ...empty,
    ),
  },
  {
    name: 'mcl01 (3.3.9): two Content-Lengths that differ',
    verdict: { status: 400, reason: 'Multiple Content-Length Headers' },
    text: sip(
      'OPTIONS sip:user@example.com SIP/2.0',
      ...usual('OPTIONS', 'mcl01'),
      'Content-Length: 13',
      'Content-Length: 5',
      'Content-Type: text/plain',
      '',
      'There is no way to know how many octets are supposed to be here.',
    ),
  },
  {
    name: 'bcast (3.3.10): a response that would be forwarded to a broadcast address',
    verdict: 'accepted',
    text: sip(
      'SIP/2.0 200 OK',
      'Via: SIP/2.0/UDP 192.0.2.198;branch=z9hG4bK1324923',
      'Via: SIP/2.0/UDP 255.255.255.255;branch=z9hG4bK1saber23',
      ...without(usual('INVITE', 'bcast'), 'Via'),
      'Content-Type: application/sdp',
      'Content-Length: 112',
      '',
      sdp,
    ),
  },
  {
    name: 'zeromf (3.3.11): Max-Forwards 0',
    verdict: 'accepted',
    text: sip(
      'OPTIONS sip:user@example.com SIP/2.0',
      ...without(usual('OPTIONS', 'zeromf'), 'Max-Forwards'),
      'Max-Forwards: 0',
      ...empty,
    ),
  },
  {
    name: 'cparam01 (3.3.12): an unknown parameter of the Contact header',
    verdict: 'accepted',
    text: sip(
      'REGISTER sip:example.com SIP/2.0',
      ...usual('REGISTER', 'cparam01'),
      'Contact: sip:+19725552222@gw1.example.net;unknownparam',
      ...empty,
    ),
  },
  {
    name: 'cparam02 (3.3.13): an unknown parameter of the Contact URI',
    verdict: 'accepted',
    text: sip(
      'REGISTER sip:example.com SIP/2.0',
      ...usual('REGISTER', 'cparam02'),
      'Contact: <sip:+19725552222@gw1.example.net;unknownparam>',
      ...empty,
    ),
  },
  {
    name: 'regescrt (3.3.14): an escaped Route in the Contact URI',
    verdict: 'accepted',
    text: sip(
      'REGISTER sip:example.com SIP/2.0',
      ...usual('REGISTER', 'regescrt'),
      'Contact: <sip:user@example.com?Route=%3Csip:sip.example.com%3E>',
      ...empty,
    ),
  },
  {
    name: 'sdp01 (3.3.15): an INVITE that accepts no SDP in answers',
    verdict: 'accepted',
    text: sip(
      'INVITE sip:user@example.com SIP/2.0',
      ...usual('INVITE', 'sdp01'),
      'Contact: <sip:caller@host5.example.net>',
      'Accept: text/nobodyKnowsThis',
      'Content-Type: application/sdp',
      'Content-Length: 112',
      '',
      sdp,
    ),
  },
  {
    name: 'inv2543 (3.4.1): no tag, branch, Max-Forwards, Contact or Content-Length',
    verdict: 'accepted',
    text: sip(
      'INVITE sip:UserB@example.com SIP/2.0',
      'Via: SIP/2.0/UDP iftgw.example.com',
      'From: <sip:+13035551111@ift.client.example.net;user=phone>',
      'Record-Route: <sip:UserB@example.com;maddr=ss1.example.com>',
      'To: sip:+16505552222@ss1.example.net;user=phone',
      'Call-ID: inv2543.1717@ift.client.example.com',
      'CSeq: 56 INVITE',
      'Content-Type: application/sdp',
      '',
      sdp,
    ),
  },
]
