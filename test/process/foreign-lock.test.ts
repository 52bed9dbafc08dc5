import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { openPeer, startWithNode } from '../support/scripted-node.ts'
import { sdp, type SipPeer } from '../support/sip-peer.ts'
import type { TollgateProcess } from '../support/tollgate-process.ts'

function dial(caller: SipPeer, tollgate: TollgateProcess) {
  const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
  const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
  caller.request('INVITE', leg, { body: sdp('caller') })
  return leg
}

async function answer(node: SipPeer): Promise<void> {
  node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await node.next('ACK')
}

test("another process's lock stops neither the loop nor answers; while records cannot be stored new calls are refused", async () => {
  const { node, tollgate } = await startWithNode((ports) => seedFor(ports))
  const key = (await tollgate.run(['key', 'create', '--name', 'all', '--scopes', '*'])).trim()
  const caller = await openPeer(tollgate)
  const other = new Database(tollgate.databasePath)
  onTestFinished(() => void other.close())
  const readiness = async () => (await fetch(`http://127.0.0.1:${tollgate.apiPort}/readyz`)).status

  other.exec('BEGIN EXCLUSIVE')
  const talking = dial(caller, tollgate)
  const written = fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/tenants`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ slug: 'new', name: 'New', domains: ['new.example'] }),
  })
  await answer(node)
  caller.learn(talking, await caller.next('200 INVITE'))
  caller.request('ACK', talking)
  other.exec('ROLLBACK')
  expect((await written).status).toBe(201)

  other.exec('BEGIN EXCLUSIVE')
  caller.request('BYE', talking)
  node.reply(await node.next('BYE'), 200)
  await caller.next('200 BYE')
  await expect.poll(readiness).toBe(503)
  const refused = dial(caller, tollgate)
  expect((await caller.next('503 INVITE')).get('Retry-After')).toBe('5')
  caller.request('ACK', refused)
  other.exec('ROLLBACK')
  const calls = await tollgate.waitForCalls(2)
  expect(calls.toSorted((a, b) => a.sip_code - b.sip_code)).toMatchObject([
    { call_id: talking.callId, sip_code: 200, disposition: 'ANSWERED' },
    { call_id: refused.callId, sip_code: 503, denial_code: 'storage_unavailable' },
  ])
})
