/** Several instances on one PostgreSQL: a source that one of them bans is not heard by any. */
import { afterEach, describe, expect, test } from 'vitest'
import { FloodGuard } from '../../../engine/flood-guard/flood-guard.ts'
import { SharedBans } from '../../../engine/flood-guard/shared-bans.ts'
import { ServerChanges } from '../../../schema/changes/server-changes.ts'
import { openStore } from '../../../schema/postgres/open.ts'
import { ServerNotices } from '../../../schema/changes/server-notices.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'
import { postgresProxy } from '../../support/postgres-proxy.ts'
import { eventually } from '../../support/waiting.ts'

const source = '203.0.113.9'
const at = (address: string, protocol = 'tcp') => ({ protocol, address, port: 5_060 })
const packet = 'OPTIONS sip:a@h SIP/2.0\r\n\r\n'
const withinASecond = 1_000

/** Addresses that other instances have banned. */
const insertMany = (count: number): string =>
  `INSERT INTO source_ban (source, kind, reason, since, until)
   SELECT '198.51.' || (n / 256) || '.' || (n % 256), 'claimed', 'unknown_calls', 1, 9000000000000
   FROM generate_series(1, ${count}) AS n`

describe.runIf(hasPostgres)('bans of several instances', () => {
  const closers: (() => unknown)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close()
  })

  async function database(): Promise<string> {
    const { url, drop } = await freshDatabase()
    closers.push(drop)
    return url
  }

  async function node(url: string) {
    const schedule = (work: () => void, waitMs: number): (() => void) => {
      const timer = setTimeout(work, waitMs)
      return () => clearTimeout(timer)
    }
    const log = (): void => undefined
    const secretKey = Buffer.alloc(32, 1).toString('base64')
    const store = await openStore(url, { secretKey, keyFile: '/none', now: 0, connections: 3 })
    closers.push(() => store.close())
    const notices = new ServerNotices({ url, schedule, log })
    closers.push(() => notices.stop())
    await notices.start()
    const changes = await ServerChanges.open({ notices, schedule, random: () => 0, log })
    closers.push(() => changes.stop())
    const now = (): number => performance.now()
    const guard = new FloodGuard({ now, isExempt: () => false, log })
    const { statements } = store
    const bans = new SharedBans({ store: { statements }, notices, guard, now, schedule, log })
    closers.push(() => bans.stop())
    changes.follow({
      topics: ['source_ban'],
      reload: (details) => bans.reload(details),
      intervalMs: 500,
    })
    await bans.reload()
    await changes.start()
    const hears = (address: string, protocol = 'tcp'): boolean =>
      guard.admit(at(address, protocol), packet)
    const isCalled = (times: number, from = source, protocol = 'tcp'): void => {
      for (let call = 0; call < times; call += 1) guard.unknownSource(at(from, protocol))
    }
    return { guard, bans, store, hears, isCalled }
  }

  test('a ban by an operator holds on all instances within a second, and each lists it', async () => {
    const url = await database()
    const [a, b] = [await node(url), await node(url)]
    await a.bans.ban(source, 60_000)
    expect(a.hears(source)).toBe(false)
    await eventually(() => expect(b.hears(source)).toBe(false), withinASecond)
    for (const { guard } of [a, b]) {
      const [ban] = guard.bans()
      expect(ban).toMatchObject({ source, reason: 'operator' })
      expect((ban?.until ?? 0) - performance.now()).toBeGreaterThan(50_000)
      expect((ban?.until ?? 0) - performance.now()).toBeLessThanOrEqual(60_000)
    }
    expect(b.hears('203.0.113.10')).toBe(true)
  })

  test.each(['tcp', 'udp'])(
    'what an instance finds in calls by %s holds on all within a second, as severe as there',
    async (protocol) => {
      const url = await database()
      const [a, b] = [await node(url), await node(url)]
      a.isCalled(30, source, protocol)
      expect(a.hears(source, protocol)).toBe(false)
      await eventually(() => expect(b.hears(source, protocol)).toBe(false), withinASecond)
      expect(b.guard.bans()).toMatchObject([{ source, reason: 'unknown_calls' }])
      // A datagram may be forged: the connections of its source are heard.
      expect([a, b].map((each) => each.hears(source, 'tcp'))).toEqual(
        protocol === 'udp' ? [true, true] : [false, false],
      )
    },
  )

  test('a source that is let in again on one instance is heard by all, and begins anew there', async () => {
    const url = await database()
    const [a, b] = [await node(url), await node(url)]
    a.isCalled(30)
    await eventually(() => expect(b.hears(source)).toBe(false), withinASecond)
    b.isCalled(29)
    expect(await b.bans.unban(source)).toBe(true)
    await eventually(() => expect([a.hears(source), b.hears(source)]).toEqual([true, true]), 1_000)
    a.isCalled(29)
    b.isCalled(29)
    // A later notice has arrived: so nothing was told of the source.
    await a.bans.ban('203.0.113.10', 60_000)
    await eventually(() => expect(b.hears('203.0.113.10')).toBe(false), withinASecond)
    expect([a.hears(source), b.hears(source)]).toEqual([true, true])
    expect(await a.bans.unban(source)).toBe(false)
  })

  test('an operator takes back a ban of operators on all instances, and none that an instance has found', async () => {
    const url = await database()
    const [a, b] = [await node(url), await node(url)]
    a.isCalled(30)
    await a.bans.ban(source, 60_000)
    await eventually(() => expect(b.guard.bans()).toHaveLength(2), withinASecond)
    await b.bans.endOperatorBan(source)
    for (const { guard } of [a, b])
      await eventually(
        () => expect(guard.bans()).toMatchObject([{ source, reason: 'unknown_calls' }]),
        withinASecond,
      )
  })

  test('a flood of forged sources fills no table: 100 bans at once and ten a second spread', async () => {
    const url = await database()
    const [a, b] = [await node(url), await node(url)]
    for (let index = 0; index < 400; index += 1)
      a.isCalled(30, `198.51.${100 + (index >> 8)}.${index & 255}`, 'udp')
    expect(a.guard.bans()).toHaveLength(400)
    await eventually(() => expect(b.guard.bans().length).toBeGreaterThanOrEqual(100))
    const [row] = await b.store.statements
      .prepare<{ readonly count: number }>('SELECT count(*) AS count FROM source_ban')
      .all([])
    expect(row?.count).toBeGreaterThanOrEqual(100)
    expect(row?.count).toBeLessThan(150)
  })

  test('bans that are lifted in the database, a few or all at once, hold on no instance after a second', async () => {
    const url = await database()
    const [a, b] = [await node(url), await node(url)]
    await a.store.statements.execute(insertMany(20))
    await eventually(() => expect(b.guard.bans()).toHaveLength(20), withinASecond)
    await a.store.statements.execute("DELETE FROM source_ban WHERE source = '198.51.0.7'")
    await eventually(() => expect(b.guard.bans()).toHaveLength(19), withinASecond)
    expect(b.hears('198.51.0.7', 'udp')).toBe(true)
    await a.store.statements.execute('DELETE FROM source_ban')
    await eventually(() => expect(b.guard.bans()).toHaveLength(0), withinASecond)
  })

  test('bans that are over are removed from the table', async () => {
    const { bans, store } = await node(await database())
    await bans.ban(source, 1)
    await bans.ban('203.0.113.10', 60_000)
    await bans.clean()
    const stored = store.statements.prepare('SELECT source FROM source_ban')
    expect(await stored.all([])).toEqual([{ source: '203.0.113.10' }])
  })

  test('what an instance finds while the database is away holds there, and elsewhere when that is back', async () => {
    const direct = await database()
    const proxy = await postgresProxy(direct)
    closers.push(() => proxy.close())
    const [a, b] = [await node(proxy.url), await node(direct)]
    proxy.cut()
    a.isCalled(30)
    expect(a.hears(source)).toBe(false)
    expect(b.hears(source)).toBe(true)
    proxy.mend()
    await eventually(() => expect(b.hears(source)).toBe(false))
  })
})
