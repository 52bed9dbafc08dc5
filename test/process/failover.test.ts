/**
 * A standby takes over from the PostgreSQL server of an instance that lives, without what was
 * committed last.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { findPostgres, TemporaryPostgres } from '../../engine/commands/demo/temporary-postgres.ts'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { cents, paying, seedFor } from '../sipp/call-case.ts'
import { realTimers } from '../support/only-process.ts'
import { openPeer } from '../support/scripted-node.ts'
import { type Leg, SipPeer, sdp } from '../support/sip-peer.ts'
import { Standby } from '../support/standby.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patientInstances } from '../support/waiting.ts'

const SECRET_KEY = 'A'.repeat(43)
const programs = findPostgres()

async function startServers() {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-failover-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  chmodSync(folder, 0o711)
  const [one, two] = [join(folder, 'one'), join(folder, 'two')]
  const primary = await TemporaryPostgres.start({
    programs: programs ?? '',
    folder: one,
    ownerPid: process.pid,
    schedule: realTimers().schedule,
  })
  onTestFinished(() => primary.stop())
  const standby = await Standby.follow(programs ?? '', one, two)
  onTestFinished(() => standby.stop())
  const url = `postgres://tollgate@localhost/postgres?host=${two},${one}&target_session_attrs=read-write`
  return { primary, standby, url }
}

async function startNode(url: string) {
  const place = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: 9 }
  const node = await SipPeer.openPatient({ protocol: 'udp', port: 9, ...place })
  onTestFinished(() => node.close())
  node.always('OPTIONS', 200, { tag: 'probed' })
  const tollgate = await TollgateProcess.start(seedFor([node.port]), {
    ...patientInstances,
    DATABASE_URL: url,
    SECRET_KEY,
    NODE_NAME: 'sbc-1',
    DATABASE_AWAY_SECONDS: '120',
  })
  onTestFinished(() => tollgate.stop())
  return { node, tollgate }
}

/** Resolves with its final status, after it has been answered and ended. */
async function call({ node, tollgate }: Awaited<ReturnType<typeof startNode>>): Promise<number> {
  const caller = await openPeer(tollgate)
  const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
  const leg: Leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
  caller.request('INVITE', leg, { body: sdp('caller') })
  const refused = (): number | undefined =>
    caller.inbox.find(({ status }) => (status ?? 0) >= 400)?.status
  const isRinging = (): boolean => node.inbox.some(({ method }) => method === 'INVITE')
  await eventually(() => expect(isRinging() || refused() !== undefined).toBe(true))
  const status = refused()
  if (status !== undefined) return status
  node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('node') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await node.next('ACK')
  caller.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  await caller.next('200 BYE')
  return 200
}

describe.runIf(programs !== undefined || process.env['CI'] === 'true')('failover', () => {
  test('a standby that takes over without the last commits gets the calls that it lacks, each once, and the instance serves meanwhile', async () => {
    const { primary, standby, url } = await startServers()
    const world = await startNode(url)
    const database = new PostgresStatements({ url, connections: 1 })
    onTestFinished(() => database.close())
    const stored = () =>
      database
        .prepare<{ readonly records: number; readonly cost: number }>(
          `SELECT count(*) AS records, coalesce(sum(cost_micros), 0) AS cost FROM cdr
            WHERE disposition = 'ANSWERED'`,
        )
        .get([])
    const areStored = (records: number): Promise<void> =>
      eventually(async () => expect(await stored()).toMatchObject({ records }), 60_000)

    expect(await call(world)).toBe(200)
    await areStored(1)
    await standby.lag()
    expect([await call(world), await call(world)]).toEqual([200, 200])
    await areStored(3)
    await primary.stop()
    expect(await call(world)).toBe(200)
    await standby.promote()
    await areStored(4)
    expect(await call(world)).toBe(200)
    await areStored(5)

    const cost = (await stored())?.cost ?? 0
    expect(cost).toBeGreaterThan(0)
    const wallet = database.prepare(
      `SELECT balance_micros, (SELECT sum(amount_micros) FROM ledger_entry WHERE wallet_id = wallet.id) AS ledger,
         (SELECT count(*) FROM ledger_entry WHERE wallet_id = wallet.id AND kind = 'debit') AS debits,
         (SELECT coalesce(sum(amount), 0) FROM share
          WHERE kind = 'wallet' AND resource = CAST(wallet.id AS text)) <= balance_micros AS is_held
       FROM wallet JOIN customer ON customer.id = customer_id WHERE name = 'paying'`,
    )
    const left = cents(1_000) - cost
    expect(await wallet.get([])).toEqual({
      balance_micros: left,
      ledger: left,
      debits: 5,
      is_held: 1,
    })
    expect(world.tollgate.log.some((line) => line.includes('has lost calls'))).toBe(true)
  }, 120_000)
})
