/** Two processes on one PostgreSQL database. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { cents, paying, seedFor } from '../sipp/call-case.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { postgresProxy, type PostgresProxy } from '../support/postgres-proxy.ts'
import { openPeer } from '../support/scripted-node.ts'
import { SipPeer, sdp } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, inOneOf, patientNodes } from '../support/waiting.ts'

const SECRET_KEY = 'A'.repeat(43)

describe.runIf(hasPostgres)('two nodes on one database', () => {
  let drop: () => Promise<void>
  let database: PostgresStatements
  let node: SipPeer
  let nodes: readonly TollgateProcess[] = []
  let token: string
  let url: string
  let proxy: PostgresProxy

  beforeAll(async () => {
    ;({ url, drop } = await freshDatabase())
    database = new PostgresStatements({ url })
    const place = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: 9 }
    node = await SipPeer.openPatient({ protocol: 'udp', port: 9, ...place })
    node.always('OPTIONS', 200, { tag: 'probed' })
    const seed = seedFor([node.port])
    proxy = await postgresProxy(url)
    const environment = { ...patientNodes, DATABASE_URL: proxy.url, SECRET_KEY }
    const first = await TollgateProcess.start(seed, { ...environment, NODE_NAME: 'sbc-1' })
    const other = { NODE_NAME: 'sbc-2', EXIT_CODES: 'none' }
    const settings = { ...environment, ...other }
    const second = await TollgateProcess.start(seed, settings, { isActivated: true })
    nodes = [first, second]
    token = await first.createKey('--name', 'crm', '--kind', 'pbx', '--scopes', '*')
  }, 120_000)
  afterAll(async () => {
    for (const each of nodes) await each.stop()
    node.close()
    proxy.close()
    await database.close()
    await drop()
  }, 120_000)

  const ask = async (
    index: number,
    path: string,
    { key = token, ...options }: { key?: string; method?: string; body?: object } = {},
  ) => {
    const response = await fetch(`http://127.0.0.1:${nodes[index]?.apiPort}${path}`, {
      method: options.method ?? (options.body === undefined ? 'GET' : 'POST'),
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
    })
    const body = (await response.json()) as { readonly data?: unknown }
    return { status: response.status, data: body.data, body }
  }

  test('both serve, and each lists both', async () => {
    for (const index of [0, 1]) {
      expect((await ask(index, '/readyz')).status).toBe(200)
      await eventually(async () =>
        expect((await ask(index, '/api/v1/nodes')).data).toMatchObject([
          { name: 'sbc-1', epoch: 1, state: 'serving', is_this: index === 0 },
          { name: 'sbc-2', epoch: 1, state: 'serving', is_this: index === 1 },
        ]),
      )
    }
  })

  test('a setting that must be the same on all nodes, and is not, is told at the start with both values, and at /readyz', async () => {
    const line = at(1).log.find((each) => each.includes('must be the same on all nodes'))
    expect(JSON.parse(line ?? '{}')).toMatchObject({
      level: 'warn',
      EXIT_CODES: { 'sbc-1': 'unset', 'sbc-2': 'none' },
    })
    expect((await ask(1, '/readyz')).data).toMatchObject({ status: 'ready', settings: 'different' })
  })

  test('a key that is revoked on one is refused on the other within a second', async () => {
    await inOneOf(3, async (attempt) => {
      const body = { name: `short ${attempt}`, kind: 'sbc', scopes: ['metrics:read'] }
      const made = (await ask(0, '/api/v1/application-keys', { body })).data as {
        readonly token: string
        readonly uuid: string
      }
      const statusOfOther = async () => (await ask(1, '/api/v1/nodes', { key: made.token })).status
      await eventually(async () => expect(await statusOfOther()).toBe(200))
      const path = `/api/v1/application-keys/${made.uuid}`
      expect((await ask(0, path, { method: 'DELETE' })).status).toBe(200)
      await eventually(async () => expect(await statusOfOther()).toBe(401), 1_000)
    })
  })

  let dialled = 0
  /** Call-IDs of the calls that have talked. */
  const talked: string[] = []

  /** Each call has a number of its own, so that the node tells them apart. */
  const dial = async (tollgate: TollgateProcess) => {
    dialled += 1
    const number = String(18_005_550_000 + dialled)
    const caller = await openPeer(tollgate)
    const plain = caller.leg(`sip:${number}@127.0.0.1:${tollgate.sipPort}`)
    const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
    caller.request('INVITE', leg, { body: sdp('caller') })
    const rings = node.next(({ method, uri }) => method === 'INVITE' && uri.includes(number))
    const refused = caller.next(({ status }) => status >= 300)
    for (const promise of [rings, refused]) promise.catch(() => undefined)
    return { caller, leg, rings, refused }
  }

  /** The status of the response, or 0 for a call that rings; its callee is busy then. */
  const refusal = async (tollgate: TollgateProcess): Promise<number> => {
    const { rings, refused } = await dial(tollgate)
    const { status } = await Promise.race([rings, refused])
    if (status !== 0) return status
    node.reply(await rings, 486, { tag: 'busy' })
    await refused
    return 0
  }

  const talk = async (tollgate: TollgateProcess) => {
    const { caller, leg, first } = await eventually(async () => {
      const { rings, refused, ...call } = await dial(tollgate)
      const first = await Promise.race([rings, refused])
      // The wallet could not be asked: the server stands still for a moment, or is away.
      if (first.status === 503) throw new Error(first.startLine)
      return { ...call, first }
    })
    if (first.status !== 0) throw new Error(first.startLine)
    node.reply(first, 200, { tag: 'b', body: sdp('node') })
    caller.learn(leg, await caller.next('200 INVITE'))
    caller.request('ACK', leg)
    await node.next('ACK')
    talked.push(leg.callId)
    const hangUp = async (): Promise<void> => {
      caller.request('BYE', leg)
      node.reply(await node.next('BYE'), 200)
      await caller.next('200 BYE')
    }
    return { hangUp }
  }

  const records = () =>
    database
      .prepare<{ call_id: string; cost_micros: number; disposition: string }>('SELECT * FROM cdr')
      .all([])

  /** Each call that has talked has one record, and the wallet has paid each once. */
  const booksAreRight = async (): Promise<void> => {
    await eventually(async () => {
      const answered = (await records()).filter(({ disposition }) => disposition === 'ANSWERED')
      expect(answered.map((record) => record.call_id).toSorted()).toEqual(talked.toSorted())
    })
    const cost = (await records()).reduce((sum, record) => sum + record.cost_micros, 0)
    const wallet = await database
      .prepare<{ balance_micros: number; ledger: number }>(
        `SELECT balance_micros, (SELECT sum(amount_micros) FROM ledger_entry WHERE wallet_id = wallet.id) AS ledger
           FROM wallet JOIN customer ON customer.id = customer_id WHERE name = 'paying'`,
      )
      .get([])
    expect(wallet).toEqual({ balance_micros: cents(1_000) - cost, ledger: cents(1_000) - cost })
  }

  const at = (index: number): TollgateProcess => {
    const found = nodes[index]
    if (found === undefined) throw new Error(`there is no node ${index}`)
    return found
  }

  test('a call through either is paid from the same wallet, once', async () => {
    for (const tollgate of nodes) await (await talk(tollgate)).hangUp()
    await booksAreRight()
    expect(nodes.flatMap(({ faults }) => faults)).toEqual([])
  })

  test('a live call and its record name the node that took it, whichever node is asked', async () => {
    for (const [index, instance] of ['sbc-1', 'sbc-2'].entries()) {
      const { hangUp } = await talk(at(index))
      for (const asked of [0, 1]) {
        const { body } = await ask(asked, '/api/v1/pbx/calls/active')
        expect(body).toMatchObject([{ instance, node: expect.stringMatching(/^sip:/) }])
      }
      await hangUp()
      const period = 'start_date=2020-01-01&end_date=2100-01-01'
      const path = `/api/v1/reports/cdrs?${period}&call_id=${talked.at(-1)}`
      for (const asked of [0, 1])
        await eventually(async () =>
          expect((await ask(asked, path)).body).toMatchObject({ records: [{ instance }] }),
        )
    }
  })

  test('a price that is changed on one holds for calls of the other within a second', async () => {
    const body = { is_active: false }
    const customers = (await ask(0, '/api/v1/customers')).data as { id: number; name: string }[]
    const customer = customers.find(({ name }) => name === 'paying')
    const path = `/api/v1/customers/${customer?.id}`
    await inOneOf(3, async () => {
      expect((await ask(0, path, { method: 'PATCH', body })).status).toBe(200)
      await eventually(async () => expect(await refusal(at(1))).toBe(402), 2_000)
      expect((await ask(0, path, { method: 'PATCH', body: { is_active: true } })).status).toBe(200)
      const { hangUp } = await eventually(() => talk(at(1)), 2_000)
      await hangUp()
    })
  })

  test('a call outlives kill -9 of its node, and is paid once; the node is the next epoch', async () => {
    const { hangUp } = await talk(at(0))
    await at(0).kill()
    await at(0).restart()
    await hangUp()
    await eventually(async () =>
      expect((await ask(1, '/api/v1/nodes')).data).toMatchObject([{ epoch: 2 }, { epoch: 1 }]),
    )
    await booksAreRight()
  })

  test('calls go on while the database server is away, writes get 503, and both serve again without a restart', async () => {
    const { hangUp } = await talk(at(0))
    proxy.cut()
    await hangUp()
    const body = { name: 'late', kind: 'sbc', scopes: ['metrics:read'] }
    expect((await ask(0, '/api/v1/application-keys', { body })).status).toBe(503)
    expect((await ask(1, '/readyz')).status).toBe(200)
    proxy.mend()
    await booksAreRight()
    for (const index of [0, 1])
      await eventually(async () => {
        const again = { ...body, name: `late ${index} ${Date.now()}` }
        expect((await ask(index, '/api/v1/application-keys', { body: again })).status).toBe(201)
      })
    await (await talk(at(1))).hangUp()
    await booksAreRight()
  })

  test('a third process with a name that is taken does not start', async () => {
    const environment = { DATABASE_URL: url, SECRET_KEY, NODE_NAME: 'sbc-1' }
    await expect(TollgateProcess.start(seedFor([node.port]), environment)).rejects.toThrow(
      'did not start',
    )
  })

  test('calls of a node go on when it is restarted on the same sockets', async () => {
    const { hangUp } = await talk(at(1))
    await at(1).restartInOrder()
    await hangUp()
    await booksAreRight()
    await eventually(async () =>
      expect((await ask(0, '/api/v1/nodes')).data).toMatchObject([
        { name: 'sbc-1', state: 'serving', differing_settings: ['EXIT_CODES'] },
        { name: 'sbc-2', state: 'serving', differing_settings: ['EXIT_CODES'] },
      ]),
    )
  })

  test('a node that was paused, and whose name another one has, takes no new calls', async () => {
    at(0).signal('SIGSTOP')
    await database.execute(
      "UPDATE node SET heartbeat_at = heartbeat_at - 10000 WHERE name = 'sbc-1'",
    )
    const environment = { DATABASE_URL: url, SECRET_KEY, NODE_NAME: 'sbc-1' }
    const other = await TollgateProcess.start(seedFor([node.port]), environment)
    at(0).signal('SIGCONT')
    await eventually(async () => expect((await ask(0, '/readyz')).status).toBe(503))
    expect(await refusal(at(0))).toBe(503)
    await other.stop()
  })
})
