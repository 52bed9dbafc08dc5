import { expect, test } from 'vitest'
import { FlowTexts } from '../../../../engine/sip-server/core/transactions.ts'
import type { Flow } from '../../../../engine/sip-server/flow.ts'
import { tcpCaller, udp } from '../../../support/sip-core.ts'

const { listener: tcp } = tcpCaller
const flows: readonly Flow[] = [
  { listener: udp, address: '192.0.2.1', port: 5060, connectionId: 0 },
  { listener: tcp, address: '2001:db8::1', port: 61_234, connectionId: 7 },
  { listener: tcp, address: 'fe80::1%eth0', port: 61_234, connectionId: 7, returnPort: 5060 },
  {
    listener: tcp,
    address: '192.0.2.1',
    port: 5061,
    connectionId: 0,
    hostName: 'carrier.example',
    connectMs: 4_000,
  },
]

test('every flow comes back as it was, with its very listener', () => {
  const texts = new FlowTexts()
  const written = flows.map((flow) => texts.write(flow))
  const read = written.map((text) => texts.read(text))
  expect(read).toEqual(flows)
  expect(read.map(({ listener }) => listener === udp)).toEqual([true, false, false, false])
  expect(written.join('')).not.toContain('\n')
})
