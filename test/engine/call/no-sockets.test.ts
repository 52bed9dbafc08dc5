import { createSocket } from 'node:dgram'
import { createServer, get } from 'node:http'
import { connect } from 'node:net'
import { expect, test } from 'vitest'

// `test/support/no-sockets.ts` sees to it in every file of this folder.
test.each([
  ['a UDP socket', () => createSocket('udp4').bind()],
  ['a datagram', () => createSocket('udp4').send('x', 9, '127.0.0.1')],
  ['an HTTP server', () => createServer().listen(0)],
  ['a TCP connection', () => connect(9, '127.0.0.1')],
  ['an HTTP request', () => get('http://127.0.0.1:9')],
])('%s fails in the tests of call control', (_what, open) => {
  expect(open).toThrow('this suite opens no socket')
})
