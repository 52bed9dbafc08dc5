/** A process of its own that sends REGISTERs from 127.0.0.2, as fast as it is told, until it is killed. */
import { createSocket } from 'node:dgram'

const [sipPort = '', packetsPerSecond = ''] = process.argv.slice(2)
const socket = createSocket('udp4')

function registerWith(number: number): string {
  const user = `sip:${100 + (number % 900)}@acme.example`
  return [
    'REGISTER sip:acme.example SIP/2.0',
    `Via: SIP/2.0/UDP 127.0.0.2:5060;branch=z9hG4bK${number};rport`,
    'Max-Forwards: 70',
    `From: <${user}>;tag=${number}`,
    `To: <${user}>`,
    `Call-ID: flood-${number}`,
    'CSeq: 1 REGISTER',
    'Contact: <sip:1@127.0.0.2>',
    'User-Agent: Desk Phone 2',
    'Content-Length: 0',
    '',
    '',
  ].join('\r\n')
}

socket.bind(0, '127.0.0.2', () => {
  const startedAt = performance.now()
  let sent = 0
  process.send?.('ready')
  setInterval(() => {
    const due = ((performance.now() - startedAt) * Number(packetsPerSecond)) / 1_000
    while (sent < due) socket.send(registerWith(sent++), Number(sipPort), '127.0.0.1')
  }, 1)
})
