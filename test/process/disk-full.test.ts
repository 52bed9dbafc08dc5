import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { isOnPostgres, onSqlite } from '../support/on-sqlite.ts'
import { openPeer, startWithNode } from '../support/scripted-node.ts'
import { sdp, type SipPeer } from '../support/sip-peer.ts'
import type { TollgateProcess } from '../support/tollgate-process.ts'

/** Writes of the process to a file fail from now on behind so many bytes, as on a full disk. */
function limitFiles({ pid }: TollgateProcess, limit: '1' | 'unlimited'): void {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${limit}:unlimited`])
}

async function ask(tollgate: TollgateProcess, path: string, init?: RequestInit) {
  const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}${path}`, init)
  const body = (await answer.json()) as { code?: string; error?: string }
  return { status: answer.status, retryAfter: answer.headers.get('retry-after'), ...body }
}

const isReady = async (tollgate: TollgateProcess): Promise<boolean> =>
  (await ask(tollgate, '/readyz')).status === 200

function dial(caller: SipPeer, tollgate: TollgateProcess, name = '') {
  const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
  const from = plain.from.replace('sip:peer@', `sip:${paying}@`)
  const leg = { ...plain, from: name === '' ? from : `"${name}" ${from}` }
  caller.request('INVITE', leg, { body: sdp('caller') })
  return leg
}

async function answered(caller: SipPeer, node: SipPeer, tollgate: TollgateProcess, name?: string) {
  const leg = dial(caller, tollgate, name)
  node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await node.next('ACK')
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  return leg
}

async function hangUp(caller: SipPeer, node: SipPeer, leg: ReturnType<SipPeer['leg']>) {
  caller.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  await caller.next('200 BYE')
}

test('a full disk: no caller hears an answer that is not journalled, and the records of live calls wait', async () => {
  const { node, tollgate } = await startWithNode((ports) => seedFor(ports))
  const key = await tollgate.createKey('--name', 'all', '--scopes', '*')
  const caller = await openPeer(tollgate)
  const live = await answered(caller, node, tollgate)

  limitFiles(tollgate, '1')
  const surprised = dial(caller, tollgate)
  node.reply(await node.next('INVITE'), 200, { tag: 'c', body: sdp('answer') })
  await node.next('ACK')
  node.reply(await node.next('BYE'), 200)
  expect((await caller.next('503 INVITE')).get('Retry-After')).toBe('5')
  caller.request('ACK', surprised)

  await expect.poll(() => isReady(tollgate)).toBe(false)
  expect(await ask(tollgate, '/readyz')).toMatchObject({
    status: 503,
    code: 'storage_unavailable',
    retryAfter: '5',
    error: expect.stringContaining('disk') as string,
  })
  const refused = dial(caller, tollgate)
  expect((await caller.next('503 INVITE')).get('Retry-After')).toBe('5')
  caller.request('ACK', refused)
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const body = JSON.stringify({ slug: 'new', name: 'New', domains: ['new.example'] })
  const written = await ask(tollgate, '/api/v1/tenants', { method: 'POST', headers, body })
  // Where the database is on a server, only the journal of calls is on this disk.
  const noWrite = { status: 503, code: 'storage_unavailable', retryAfter: '5' }
  expect(written).toMatchObject(isOnPostgres ? { status: 201 } : noWrite)
  await hangUp(caller, node, live)
  await expect.poll(() => tollgate.faults.join()).toContain('new calls are refused')
  if (!isOnPostgres) expect(tollgate.calls()).toEqual([])

  limitFiles(tollgate, 'unlimited')
  await expect.poll(() => isReady(tollgate)).toBe(true)
  const calls = await tollgate.waitForCalls(3)
  const of = ({ callId }: { callId: string }) => calls.find((call) => call.call_id === callId)
  expect(of(live)).toMatchObject({ disposition: 'ANSWERED', is_recovered: 0 })
  for (const leg of [surprised, refused])
    expect(of(leg)).toMatchObject({ sip_code: 503, denial_code: 'storage_unavailable', billsec: 0 })
  await hangUp(caller, node, await answered(caller, node, tollgate))
  await tollgate.waitForCalls(4)
  expect(tollgate.openCalls()).toEqual([])
})

/** The newest file of the journal: its size, and how much of that is room behind the lines. */
function journalFile(tollgate: TollgateProcess): { readonly size: number; readonly room: number } {
  const [file = ''] = tollgate.journalFiles().slice(-1)
  const content = readFileSync(file)
  return { size: content.length, room: content.length - (content.lastIndexOf('\n') + 1) }
}

/** Its calls have long lines. */
const longName = 'x'.repeat(1_000)

/** Ends calls until the journal is about to need more of the disk. */
async function untilRoomIsUsed(
  { node, tollgate }: { readonly node: SipPeer; readonly tollgate: TollgateProcess },
  caller: SipPeer,
): Promise<void> {
  let least = Infinity
  let { size } = journalFile(tollgate)
  for (let growths = 0; ;) {
    await hangUp(caller, node, await answered(caller, node, tollgate, longName))
    const now = journalFile(tollgate)
    if (now.size > size) growths += 1
    ;({ size } = now)
    if (growths === 0) least = Math.min(least, now.room)
    else if (now.room <= least + 8_192) return
  }
}

onSqlite('file')(
  'calls that are hung up on a full disk have ended: after kill -9 none comes back, and each is paid to its end',
  async () => {
    const { node, tollgate } = await startWithNode((ports) => seedFor(ports))
    const caller = await openPeer(tollgate)
    const live: Awaited<ReturnType<typeof answered>>[] = []
    for (let call = 0; call < 8; call += 1)
      live.push(await answered(caller, node, tollgate, longName))
    await untilRoomIsUsed({ node, tollgate }, caller)
    // From here on neither the journal gets a block, nor does the database take anything.
    const size = `--fsize=${journalFile(tollgate).size}:unlimited`
    execFileSync('prlimit', ['--pid', String(tollgate.pid), size])
    const database = new Database(tollgate.databasePath)
    database.exec('BEGIN IMMEDIATE')
    for (const leg of live) await hangUp(caller, node, leg)
    await tollgate.kill()
    database.close()
    await tollgate.restart()
    await expect.poll(() => idsOf(tollgate)).toEqual(expect.arrayContaining(live.map(idOf)))
    for (const call of tollgate.calls())
      expect(call).toMatchObject({ disposition: 'ANSWERED', hangup_by: 'caller', is_recovered: 0 })
    expect(tollgate.openCalls()).toEqual([])
  },
)

const idOf = ({ callId }: { readonly callId: string }): string => callId
const idsOf = (tollgate: TollgateProcess) => tollgate.calls().map((call) => call.call_id)

onSqlite('file')(
  'a stop with a full disk says which records are not stored, and the next start bills those calls',
  async () => {
    const { node, tollgate } = await startWithNode((ports) => seedFor(ports))
    const caller = await openPeer(tollgate)
    const live = await answered(caller, node, tollgate)
    limitFiles(tollgate, '1')
    await hangUp(caller, node, live)
    expect(await tollgate.terminate()).toBe(1)
    const told = () => tollgate.faults.filter((line) => line.includes('could not be written'))
    await expect.poll(() => told().join()).toContain(live.callId)
    await tollgate.restart()
    expect(tollgate.calls()).toMatchObject([{ call_id: live.callId, is_recovered: 1 }])
  },
)
