/** A listener behind NAT: its local network sees the bound address, all others the external one. */
import { expect, test } from 'vitest'
import { type Listener } from '../../../../engine/sip-server/flow.ts'
import { boundListener } from '../../../../engine/sip-server/transport/transport.ts'
import { VirtualServer, header, sdp, sip } from '../../../support/sip-core.ts'

const bound = (
  address: string,
  advertised: string | undefined,
  more: Pick<Listener, 'names'> & { localNets?: string[] },
) => boundListener('udp', { address, port: 5060 }, advertised, more)

const nat = bound('10.0.0.5', '52.0.0.1', {
  localNets: ['10.0.0.0/16'],
  names: ['sbc.example.com'],
})
const lan = bound('192.168.7.1', undefined, { localNets: ['172.20.0.0/24'] })

function call(uri: string, listeners = [nat, lan]): { via: string; contact: string; from: string } {
  const server = new VirtualServer({ listeners })
  server.command(`sip|||\r\n${sip(`INVITE ${uri} SIP/2.0`, ['To: <sip:x@y>'], sdp)}`)
  const [sent] = server.takeSent()
  const text = sent?.text ?? ''
  const { address = '' } = sent?.flow.listener ?? {}
  return { via: header(text, 'Via'), contact: header(text, 'Contact'), from: address }
}

test.each([
  ['sip:1@10.0.9.9', '10.0.0.5', '10.0.0.5'],
  ['sip:1@198.51.100.1', '10.0.0.5', '52.0.0.1'],
  ['sip:1@172.20.0.8', '192.168.7.1', '192.168.7.1'],
  ['sip:1@192.168.7.9', '192.168.7.1', '192.168.7.1'],
])('a call to %s leaves from %s and shows %s', (uri, from, shown) => {
  const made = call(uri)
  expect(made.from).toBe(from)
  expect(made.via).toContain(`SIP/2.0/UDP ${shown}:5060;`)
  expect(made.contact).toContain(`${shown}:5060`)
})

test.each(['sip:1@52.0.0.1', 'sip:1@10.0.0.5', 'sip:1@sbc.example.com'])(
  'nothing is sent to %s, which is this server',
  (uri) => {
    const server = new VirtualServer({ listeners: [nat] })
    server.command(`sip|||\r\n${sip(`INVITE ${uri} SIP/2.0`, ['To: <sip:x@y>'], sdp)}`)
    expect(server.takeSent()).toEqual([])
    expect(server.takeDelivered()[0]?.payload).toContain('can not send request to myself')
  },
)

test('a network that is none is an error', () => {
  expect(() => bound('10.0.0.5', undefined, { localNets: ['ten'] })).toThrow(
    'Invalid socket address',
  )
})
