import { expect, test } from 'vitest'
import { agrees } from '../../../engine/call/sdp.ts'

const described = (port = 4_000, formats = '0 8', more = ''): string =>
  `v=0\r\no=- 1 1 IN IP4 10.0.0.1\r\ns=x\r\nc=IN IP4 10.0.0.1\r\nt=0 0\r\nm=audio ${port} RTP/AVP ${formats}\r\n${more}`

test('an unchanged description needs no further re-INVITE', () => {
  expect(agrees(described(), described(5_000, '0'), described())).toBe(true)
  // Another name and fewer codecs make no difference, as long as what was chosen is among them.
  const final = described(4_000, '0').replace('o=- 1 1', 'o=- 1 2').replace('s=x', 's=y')
  expect(agrees(described(), described(5_000, '0'), final)).toBe(true)
  expect(agrees(described(4_000, '0', 'a=sendrecv\r\n'), described(), described())).toBe(true)
})

test.each([
  ['another port', described(4_002)],
  ['another address', described().replace('c=IN IP4 10.0.0.1', 'c=IN IP4 10.0.0.2')],
  ['an address of its stream', described(4_000, '0 8', 'c=IN IP4 10.0.0.2\r\n')],
  ['on hold', described(4_000, '0 8', 'a=sendonly\r\n')],
  ['without the codec that was chosen', described(4_000, '8')],
])('%s: a further re-INVITE is needed', (_what, final) => {
  expect(agrees(described(), described(5_000, '0'), final)).toBe(false)
})
