/** A node on PostgreSQL that was killed with live calls, and starts again: what they hold, and that they go on. */
import { expect, onTestFinished, test } from 'vitest'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { cents, paying, seedFor } from '../sipp/call-case.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { postgresProxy } from '../support/postgres-proxy.ts'
import { openPeer } from '../support/scripted-node.ts'
import { SipPeer, sdp } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patientNodes } from '../support/waiting.ts'

interface Call {
  readonly caller: SipPeer
  readonly hangUp: () => Promise<void>
}

/** Nodes of one customer with this balance; the first has a way to the server that can be slow, or cut. */
async function serving(names: readonly string[], balance: string) {
  const { url, drop } = await freshDatabase()
  onTestFinished(drop)
  const database = new PostgresStatements({ url, connections: 2 })
  onTestFinished(() => database.close())
  const proxy = await postgresProxy(url)
  onTestFinished(() => proxy.close())
  const place = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: 9 }
  const callee = await SipPeer.openPatient({ protocol: 'udp', port: 9, ...place })
  onTestFinished(() => callee.close())
  callee.always('OPTIONS', 200, { tag: 'probed' })
  // What a call holds lasts longer than the test, however slow the machine.
  const terms = { prefix: '18', rate_per_minute: '0.60', first_increment: 600 }
  const rates = [{ rate_plan: 'retail', ...terms, first_rate_per_minute: '0.60' }]
  const seed = seedFor([callee.port], { balance, rates })
  const nodes: TollgateProcess[] = []
  for (const [index, name] of names.entries()) {
    const databaseUrl = index === 0 ? proxy.url : url
    const environment = { DATABASE_URL: databaseUrl, SECRET_KEY: 'A'.repeat(43), NODE_NAME: name }
    const node = await TollgateProcess.start(seed, { ...patientNodes, ...environment })
    onTestFinished(() => node.stop())
    nodes.push(node)
  }
  const [first] = nodes
  if (first === undefined) throw new Error('there is no node')

  /** Rings or is refused. */
  const dial = async (tollgate: TollgateProcess) => {
    const caller = await openPeer(tollgate)
    const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
    const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
    caller.request('INVITE', leg, { body: sdp('caller') })
    const final = (): number | undefined =>
      caller.inbox.find(({ status }) => (status ?? 0) >= 300)?.status
    const isRinging = (): boolean => callee.inbox.some(({ method }) => method === 'INVITE')
    await eventually(() => expect(isRinging() || final() !== undefined).toBe(true))
    return { caller, leg, status: final() ?? 0 }
  }

  const talk = async (tollgate: TollgateProcess): Promise<Call> => {
    const { caller, leg, status } = await dial(tollgate)
    if (status !== 0) throw new Error(`refused: ${status}`)
    const invite = await callee.next('INVITE')
    callee.reply(invite, 200, { tag: 'b', body: sdp('node') })
    caller.learn(leg, await caller.next('200 INVITE'))
    caller.request('ACK', leg)
    await callee.next('ACK')
    const hangUp = async (): Promise<void> => {
      caller.request('BYE', leg)
      callee.reply(await callee.next('BYE'), 200)
      await caller.next('200 BYE')
    }
    return { caller, hangUp }
  }

  /** Each answered call has one record that no crash has closed, and the wallet has paid for it once. */
  const booksAreRight = async (calls: number): Promise<void> => {
    const records = database.prepare<{ cost_micros: number; is_recovered: number }>(
      "SELECT cost_micros, is_recovered FROM cdr WHERE disposition = 'ANSWERED'",
    )
    await eventually(async () => expect(await records.all([])).toHaveLength(calls))
    const stored = await records.all([])
    expect(stored.map((record) => record.is_recovered)).toEqual(stored.map(() => 0))
    const cost = stored.reduce((sum, record) => sum + record.cost_micros, 0)
    const wallet = database.prepare<{ balance_micros: number; ledger: number }>(
      `SELECT balance_micros, (SELECT sum(amount_micros) FROM ledger_entry WHERE wallet_id = wallet.id) AS ledger
         FROM wallet JOIN customer ON customer.id = customer_id WHERE name = 'paying'`,
    )
    const left = Math.round(Number(balance) * cents(100)) - cost
    expect(await wallet.get([])).toEqual({ balance_micros: left, ledger: left })
  }

  return { database, proxy, nodes, first, dial, talk, booksAreRight }
}

test.runIf(hasPostgres)(
  'what live calls hold is given to no other node while theirs is killed and starts again',
  async () => {
    // Ten minutes each: nothing is left.
    const { nodes, first, dial, talk, booksAreRight } = await serving(['sbc-1', 'sbc-2'], '12.00')
    const calls = [await talk(first), await talk(first)]
    const [, second = first] = nodes
    const asked = { isOver: false }
    const statuses: number[] = []
    const asking = async (): Promise<void> => {
      while (!asked.isOver) {
        const { status } = await dial(second)
        statuses.push(status)
        if (status === 0) return
      }
    }
    const outcome = asking()
    await first.kill()
    await first.restart()
    for (const so of statuses.splice(0)) expect([402, 503]).toContain(so)
    await eventually(() => expect(statuses.length).toBeGreaterThan(3))
    asked.isOver = true
    await outcome
    for (const status of statuses) expect([402, 503]).toContain(status)
    for (const { hangUp } of calls) await hangUp()
    await booksAreRight(2)
    expect(first.faults).toEqual([])
  },
)

test.runIf(hasPostgres)(
  'a start that loses PostgreSQL when SIP is served already leaves its calls to the next try, and nothing of it goes on',
  async () => {
    const { database, proxy, first, talk, booksAreRight } = await serving(['sbc-1'], '100.00')
    const calls = [await talk(first), await talk(first), await talk(first)]
    await first.kill()
    first.log.length = 0
    // The rest of the start takes a moment.
    proxy.delayMs = 50
    first.onLog = (line) => {
      if (line.includes('SIP is served')) proxy.cut()
    }
    const restarted = first.restart()
    const isWaiting = (): boolean =>
      first.log.some((line) => line.includes('this node waits for it'))
    await eventually(() => expect(isWaiting()).toBe(true), 40_000)
    first.onLog = () => undefined
    proxy.delayMs = 0
    proxy.mend()
    await restarted
    for (const { caller, hangUp } of calls) {
      expect(caller.inbox.filter(({ method }) => method === 'BYE')).toEqual([])
      await hangUp()
    }
    await booksAreRight(3)
    expect(
      first.log.filter((line) => line.includes('calls of the previous process were resumed')),
    ).toHaveLength(2)
    const listening = database.prepare<{ count: number }>(
      `SELECT count(*) AS count FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'tollgate notices'`,
    )
    await eventually(async () => expect(await listening.get([])).toEqual({ count: 1 }))
  },
)
