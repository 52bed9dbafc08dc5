/** Bodies of several parts (RFC 2046 §5.1, RFC 5621): what is read out of them, and what leaves. */
import { expect, test } from 'vitest'
import { assembled, described, requiredType } from '../../../engine/call/multipart.ts'
import { decodeMessage, encodeMessage } from '../../../schema/sip/message.ts'
import { sdp } from '../../support/sip-peer.ts'

const isup = decodeMessage(Buffer.from([1, 0, 0x60, 0xff, 0x80, 0x0a, 0xc3, 0x28, 0xe2]))

interface Piece {
  readonly headers: readonly string[]
  readonly body: string
}

const session: Piece = { headers: ['Content-Type: application/sdp'], body: sdp('offer') }
const signal: Piece = {
  headers: [
    'Content-Type: application/isup; version=itu-t92+; base=itu-t92+',
    'Content-Disposition: signal; handling=optional',
  ],
  body: isup,
}
const location: Piece = {
  headers: ['Content-Type: application/pidf+xml', 'Content-ID: <target@192.0.2.7>'],
  body: '<?xml version="1.0"?>\r\n<presence entity="pres:v=0@example.com"/>\r\n',
}

const joined = (boundary: string, ...pieces: readonly Piece[]): string =>
  [
    ...pieces.flatMap(({ headers, body }) => [`--${boundary}`, ...headers, '', body]),
    `--${boundary}--`,
    '',
  ].join('\r\n')

const mixed = (text: string, type = 'multipart/mixed;boundary=b') =>
  described({ 'content-type': type, 'mime-version': '1.0' }, text)

const withHeaders = (piece: Piece, ...headers: readonly string[]): Piece => ({ ...piece, headers })

const both = joined('b', session, signal)

test.each([
  ['first', both],
  ['last', joined('b', signal, session)],
  ['after the location of the caller', joined('b', location, session)],
  ['between two others', joined('b', location, session, signal)],
  ['after a preamble', `This is a message\r\nof several parts.\r\n${both}`],
  ['before an epilogue', `${both}--b\r\nnobody reads this`],
  ['without the last delimiter', both.replace('--b--\r\n', '')],
  ['with blanks after delimiters', both.replaceAll('--b\r\n', '--b \t\r\n')],
  ['with bare line feeds', both.replaceAll('\r\n', '\n')],
  [
    'in a part with headers in other cases, and one folded',
    joined('b', withHeaders(session, 'CONTENT-TYPE :\r\n\tApplication/SDP;\r\n charset=utf-8')),
  ],
  ['in a part with a compact header', joined('b', withHeaders(session, 'c: application/sdp'))],
  [
    'in a part that says what it is for',
    joined(
      'b',
      signal,
      withHeaders(
        session,
        'Content-Disposition: session;handling=required',
        'Content-Type: application/sdp',
        'Content-Transfer-Encoding: 8bit',
      ),
    ),
  ],
  [
    'beside a boundary that only begins so',
    joined('b', { ...signal, body: '--bb\r\n--b x\r\nx--b' }, session),
  ],
])('a description is found %s, and all the rest leaves as it came', (_where, text) => {
  const { headers, body } = mixed(text)
  expect(body.replaceAll('\r\n', '\n')).toBe(sdp('offer').replaceAll('\r\n', '\n'))
  expect(headers['content-type']).toBe('application/sdp')
  const type = 'multipart/mixed;boundary=b'
  expect(assembled(headers, body)).toEqual({
    headers: { 'content-type': type, 'mime-version': '1.0' },
    body: text,
  })
  const other = assembled(headers, sdp('relayed', 30_002)).body
  expect(other.replaceAll('\r\n', '\n')).toBe(
    text
      .replaceAll('\r\n', '\n')
      .replace(
        sdp('offer').replaceAll('\r\n', '\n'),
        sdp('relayed', 30_002).replaceAll('\r\n', '\n'),
      ),
  )
})

test('a description whose last line ends with the delimiter is whole, and leaves as it came', () => {
  const bare = { ...session, body: sdp('offer').trimEnd() }
  const text = joined('b', bare, signal)
  const { headers, body } = mixed(text)
  expect(body).toBe(sdp('offer'))
  expect(assembled(headers, body).body).toBe(text)
  expect(assembled(headers, sdp('relayed')).body).toBe(text.replace('s=offer', 's=relayed'))
})

test('bytes that are no text come through', () => {
  const { headers, body } = mixed(both)
  const { body: sent } = assembled(headers, body.replace('s=offer', 's=other'))
  const bytes = encodeMessage(sent)
  expect(bytes.includes(Buffer.from([1, 0, 0x60, 0xff, 0x80, 0x0a, 0xc3, 0x28, 0xe2]))).toBe(true)
})

test.each([
  'multipart/mixed; boundary="b"',
  'Multipart/Mixed ; Boundary = b; charset=x',
  'multipart/related; type="application/sdp"; boundary="\\b"',
  'multipart/unheard-of;boundary=b',
])('the type is %s', (type) => {
  expect(mixed(both, type).body).toBe(sdp('offer'))
})

test('a boundary may have blanks and marks, if it is quoted', () => {
  const text = joined('=_a b:(c)?', signal, session)
  expect(mixed(text, 'multipart/mixed; boundary="=_a b:(c)?"').body).toBe(sdp('offer'))
})

test('a nested description is found, and the rest leaves as it came', () => {
  const inner = {
    headers: ['Content-Type: multipart/related;boundary=c'],
    body: joined('c', location, session),
  }
  const text = joined('b', signal, inner)
  const { headers, body } = mixed(text)
  expect(body).toBe(sdp('offer'))
  expect(assembled(headers, body).body).toBe(text)
})

test.each([
  ['base64', Buffer.from(sdp('offer')).toString('base64')],
  [
    'BASE64',
    Buffer.from(sdp('offer'))
      .toString('base64')
      .replaceAll(/(.{40})/g, '$1\r\n'),
  ],
  ['quoted-printable', sdp('offer').replaceAll('=', '=3D').replace('RTP/AVP', 'RTP/=\r\nAVP')],
])('a description in %s is decoded, and leaves as it is', (encoding, coded) => {
  const headers = ['Content-Transfer-Encoding: ' + encoding, 'Content-Type: application/sdp']
  const read = mixed(joined('b', { headers, body: coded }, signal))
  expect(read.body).toBe(sdp('offer'))
  expect(assembled(read.headers, sdp('relayed')).body).toBe(
    joined('b', { ...session, body: sdp('relayed') }, signal),
  )
})

test('of several ways to say the same the last description counts, and the others fall away', () => {
  const plain = { headers: ['Content-Type: text/plain'], body: 'call 40000' }
  const poor = { ...session, body: sdp('poor') }
  const type = 'multipart/alternative;boundary=b'
  const { headers, body } = mixed(joined('b', plain, poor, session), type)
  expect(body).toBe(sdp('offer'))
  expect(assembled(headers, body)).toMatchObject({ body: joined('b', session) })
})

test('a second description, or one of early media (RFC 3959), would lead past a relay, and falls away', () => {
  const early = withHeaders(
    { ...session, body: sdp('early') },
    'Content-Disposition: early-session',
    'Content-Type: application/sdp',
  )
  const { headers, body } = mixed(
    joined('b', early, session, signal, { ...session, body: sdp('x') }),
  )
  expect(body).toBe(sdp('offer'))
  expect(assembled(headers, body).body).toBe(both)
})

test('a description that is left out takes its parts along', () => {
  const { headers } = mixed(both)
  expect(assembled(headers, '')).toEqual({ headers: { 'mime-version': '1.0' }, body: '' })
})

test.each([
  ['several parts without a description', 'multipart/mixed;boundary=b', joined('b', signal)],
  ['a single one', 'application/isup;version=itu-t92+', isup],
])('%s describe nothing, and leave as they came, but not beside a description', (_, type, text) => {
  const { headers, body } = described({ 'content-type': type }, text)
  expect([body, headers['content-type']]).toEqual(['', undefined])
  expect(assembled(headers, '')).toEqual({ headers: { 'content-type': type }, body: text })
  expect(assembled(headers, sdp('own'))).toEqual({ headers: {}, body: sdp('own') })
})

const required = withHeaders(
  signal,
  'Content-Type: application/isup',
  'Content-Disposition: signal ; Handling = "required"',
)

test.each([
  ['a part that must be understood', joined('b', session, required), 'application/isup'],
  ['one of several without a description', joined('b', required), 'application/isup'],
  ['a part that may be ignored', both, undefined],
  [
    'a part that does not say',
    joined('b', session, { ...signal, headers: ['Content-Type: x/y'] }),
    undefined,
  ],
  [
    'the location of the caller, which passes',
    joined(
      'b',
      session,
      withHeaders(location, ...location.headers, 'Content-Disposition: render;handling=required'),
    ),
    undefined,
  ],
  [
    'another way to say the same',
    joined('b', {
      headers: ['Content-Type: multipart/alternative;boundary=c'],
      body: joined('c', required, session),
    }),
    undefined,
  ],
])('%s', (_what, text, type) => {
  expect(requiredType(mixed(text).headers)).toBe(type)
})

test.each([
  ['must be understood, if it does not say otherwise', {}, 'text/plain'],
  ['may be ignored', { 'content-disposition': 'render;handling=optional' }, undefined],
])('a body of one unknown part %s (RFC 3261 §20.11)', (_, disposition, type) => {
  const { headers } = described({ 'content-type': 'text/plain', ...disposition }, 'hello')
  expect(requiredType(headers)).toBe(type)
})

const nested = (depth: number): string =>
  depth === 0
    ? joined('b0', session)
    : joined(`b${depth}`, {
        headers: [`Content-Type: multipart/mixed;boundary=b${depth - 1}`],
        body: nested(depth - 1),
      })

test.each([
  ['it has no boundary', 'multipart/mixed', both],
  ['its boundary is nowhere', 'multipart/mixed;boundary=c', both],
  ['its boundary is too long', `multipart/mixed;boundary=${'b'.repeat(71)}`, both],
  [
    'it has too many parts',
    'multipart/mixed;boundary=b',
    joined('b', ...Array.from({ length: 40 }, () => signal), session),
  ],
  ['its parts are nested too deep', 'multipart/mixed;boundary=b4', nested(4)],
  ['it is signed', 'multipart/signed;boundary=b', both],
  [
    'its description is compressed',
    'multipart/mixed;boundary=b',
    joined('b', withHeaders(session, 'Content-Encoding: gzip', 'Content-Type: application/sdp')),
  ],
  [
    'its description is none',
    'multipart/mixed;boundary=b',
    joined('b', { ...session, body: 'x=0\r\n' }),
  ],
])('a body stays as it is where %s', (_why, type, text) => {
  const read = described({ 'content-type': type }, text)
  expect(read).toEqual({ headers: { 'content-type': type }, body: text })
  expect(assembled(read.headers, read.body)).toEqual({
    headers: { 'content-type': type },
    body: text,
  })
})

test('four levels are read', () => {
  expect(mixed(nested(3), 'multipart/mixed;boundary=b3').body).toBe(sdp('offer'))
})

test.each([
  ['a blank after the first line', sdp('offer').replace('v=0', 'v=0 ')],
  ['blanks around the sign', sdp('offer').replace('v=0', ' v = 0\t')],
  ['empty lines before it', `\r\n\r\n${sdp('offer')}`],
  ['a mark of the byte order before it', `\uFEFF${sdp('offer')}`],
  ['zero bytes before it', `\0\0${sdp('offer')}`],
])('a description with %s is one', (_odd, text) => {
  for (const type of ['application/sdp', ''])
    expect(described({ 'content-type': type }, text).body).toBe(sdp('offer'))
  expect(mixed(joined('b', { ...session, body: text })).body).toBe(sdp('offer'))
})

test('a description with bare line feeds keeps them', () => {
  const text = sdp('offer').replaceAll('\r\n', '\n')
  expect(described({ 'content-type': 'application/sdp' }, text).body).toBe(text)
  expect(described({ 'content-type': 'application/sdp' }, text.replace('v=0', 'v=0 ')).body).toBe(
    text,
  )
})
