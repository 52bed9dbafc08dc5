/** The softphone of GUIDE.md, set up by its text alone. */
import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { Baresip } from '../support/baresip.ts'
import { startWithNode } from '../support/scripted-node.ts'
import { sdp } from '../support/sip-peer.ts'

const [, chapter = ''] =
  /^### A softphone\n([\s\S]*?)\n### /m.exec(readFileSync('GUIDE.md', 'utf8')) ?? []
const commands = [...chapter.matchAll(/^post (\S+) '(.*)'$/gm)]
const [, account = ''] = /^```text\n(.*)\n```$/m.exec(chapter) ?? []

test('a phone that is set up by the text of the guide registers, calls out, and is charged', async () => {
  const { node, tollgate } = await startWithNode(([port]) => ({
    rate_plans: [{ name: 'retail' }],
    rates: [{ rate_plan: 'retail', prefix: '1', rate_per_minute: '0.05' }],
    customers: [{ name: 'acme', rate_plan: 'retail', balance: '10.00' }],
    dispatcher: [
      {
        endpoint_name: 'pbx',
        set_id: 1,
        algorithm: 8,
        nodes: [{ host: '127.0.0.1', internal_port: port }],
      },
    ],
  }))
  const token = await tollgate.createKey('--name', 'guide', '--scopes', '*')
  for (const [, path = '', body = ''] of commands) {
    const { status } = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body,
    })
    expect([path, status]).toEqual([path, 201])
  }
  const phone = await Baresip.start({
    account: account.replace('192.0.2.10:5060', `127.0.0.1:${tollgate.sipPort}`),
    user: '101',
    password: '',
    domain: 'acme.example',
    sipPort: tollgate.sipPort,
  })
  onTestFinished(() => phone.stop())
  await phone.registered()
  await phone.command('dial', 'sip:15550123@acme.example')
  const invite = await node.next('INVITE')
  node.reply(invite, 200, { tag: 'node', body: sdp('node', 40_000) })
  await node.next('ACK')
  await phone.next('CALL_ESTABLISHED')
  await phone.command('hangup')
  node.reply(await node.next('BYE'), 200)
  const [record] = await tollgate.waitForCalls(1)
  expect(record).toMatchObject({
    caller_id_number: '101',
    destination_number: '15550123',
    disposition: 'ANSWERED',
    denial_code: null,
  })
  expect(record?.cost_micros).toBeGreaterThan(0)
  const [wallet] = tollgate.query<{ balance_micros: number }>('SELECT balance_micros FROM wallet')
  expect(wallet?.balance_micros).toBe(10_000_000 - (record?.cost_micros ?? 0))
})
