import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { InstanceIdentity } from '../../../schema/contracts/instances.ts'
import { Heartbeat, type HeartbeatDeps } from '../../../schema/instances/heartbeat.ts'
import { registerInstance } from '../../../schema/instances/instance-registry.ts'
import { ServerClock } from '../../../schema/instances/server-clock.ts'
import { ServerNotices } from '../../../schema/changes/server-notices.ts'
import { openStore, type ServerStore } from '../../../schema/postgres/open.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'
import { eventually } from '../../support/waiting.ts'

const secretKey = 'A'.repeat(43)
const sbc1 = { name: 'sbc-1', installId: 'one', address: 'http://10.0.0.1:8080', version: '1.0.0' }

describe.runIf(hasPostgres)('instances that share a database', () => {
  let drop: () => Promise<void>
  let store: ServerStore
  let notices: ServerNotices
  let time: ManualTime
  const log: string[] = []

  beforeEach(async () => {
    const database = await freshDatabase()
    drop = database.drop
    store = await openStore(database.url, { secretKey, keyFile: '/none', now: 0 })
    log.length = 0
    time = new ManualTime(1_000_000)
    const deps = { schedule: time.schedule, log: (level: string) => log.push(level) }
    notices = new ServerNotices({ url: database.url, ...deps })
    await notices.start()
  })
  afterEach(async () => {
    await notices.stop()
    await store.close()
    await drop()
  })

  const beating = (
    identity: InstanceIdentity,
    offlineMs?: number,
    clocks?: HeartbeatDeps['clocks'],
  ): Heartbeat =>
    new Heartbeat(
      {
        ...(offlineMs !== undefined && { offlineMs }),
        ...(clocks && { clocks }),
        identity,
        address: 'http://10.0.0.1:8080',
        version: '1.0.0',
        connection: notices,
        storage: store.storage,
        settings: { differing: new Map() },
        now: time.now,
        schedule: time.schedule,
        log: (level) => log.push(level),
      },
      time.now(),
    )
  const row = async () =>
    store.statements
      .prepare<Record<string, unknown>>('SELECT * FROM node ORDER BY name DESC')
      .get([])
  const silence = (ms: number) =>
    store.statements.execute(`UPDATE node SET heartbeat_at = heartbeat_at - ${ms}`)

  test('a start on the same disk is the next epoch, at once', async () => {
    expect(await registerInstance(store, sbc1)).toEqual({ name: 'sbc-1', epoch: 1 })
    expect(await registerInstance(store, sbc1)).toEqual({ name: 'sbc-1', epoch: 2 })
  })

  test('another disk under the name of an instance that is heard is refused, and told what to do', async () => {
    await registerInstance(store, sbc1)
    await expect(registerInstance(store, { ...sbc1, installId: 'two' })).rejects.toThrow(
      /cannot serve as node sbc-1: .*10\.0\.0\.1.* set another NODE_NAME; .* in 10 s/,
    )
    expect(await row()).toMatchObject({ epoch: 1, install_id: 'one' })
  })

  test.each([
    ['is silent for ten seconds', () => silence(10_000)],
    ['has stopped', () => store.statements.execute("UPDATE node SET state = 'stopped'")],
  ])('another disk may have the name of a node that %s', async (_, become) => {
    await registerInstance(store, sbc1)
    await become()
    expect(await registerInstance(store, { ...sbc1, installId: 'two' })).toMatchObject({ epoch: 2 })
  })

  test.each([10_000, 45_000])(
    'an instance grants without the server for as long as it is set to (%i ms), and until then no other disk has its name and nothing that it has leased is freed',
    async (offlineMs) => {
      // Ten seconds are what is not set.
      const set = offlineMs === 10_000 ? undefined : offlineMs
      const instance = beating(
        await registerInstance(store, { ...sbc1, ...(set && { offlineMs: set }) }),
        set,
      )
      instance.grantsFor(() => 60)
      await instance.become('serving')
      expect((await row())?.['longest_grant_seconds']).toBe(60 + offlineMs / 1_000 - 10)
      await notices.stop()
      time.advance(offlineMs - 1_000)
      expect([instance.condition, instance.isHoldingMoney()]).toEqual(['valid', true])
      await silence(offlineMs - 1_000)
      const other = { ...sbc1, installId: 'two' }
      await expect(registerInstance(store, other)).rejects.toThrow(/cannot serve as node sbc-1/)
      time.advance(1_000)
      expect([instance.condition, instance.isHoldingMoney()]).toEqual(['unheard', false])
      await silence(1_000)
      expect(await registerInstance(store, other)).toMatchObject({ epoch: 2 })
    },
  )

  test('an instance tells every second that it lives, what it does and how many calls it has', async () => {
    const instance = beating(await registerInstance(store, sbc1))
    instance.countCalls(() => 3)
    const sipAddresses = ['10.0.0.1', '192.168.7.1']
    await instance.become('serving', 'http://10.0.0.1:9000', 'sip:10.0.0.1:5060', sipAddresses)
    expect(await row()).toMatchObject({
      state: 'serving',
      live_calls: 3,
      address: 'http://10.0.0.1:9000',
      sip_uri: 'sip:10.0.0.1:5060',
    })
    expect(instance.list()).toMatchObject([{ sipUri: 'sip:10.0.0.1:5060', sipAddresses }])
    await registerInstance(store, { ...sbc1, name: 'sbc-0', installId: 'two' })
    await silence(60_000)
    const before = (await row())?.['heartbeat_at']
    const asked = vi.spyOn(notices, 'query')
    time.advance(1_000)
    await eventually(async () => expect((await row())?.['heartbeat_at']).not.toBe(before))
    // One statement beats and lists: this instance as it is from then on, and the others.
    await eventually(() =>
      expect(instance.list()).toMatchObject([
        { name: 'sbc-0', state: 'lost', isThis: false },
        { name: 'sbc-1', state: 'serving', isThis: true },
      ]),
    )
    expect(asked).toHaveBeenCalledTimes(1)
    await instance.end()
    expect(await row()).toMatchObject({ state: 'stopped' })
  })

  test('an instance whose clock is 90 s ahead of the server warns, goes by the server, and all instances know it until it agrees again', async () => {
    let aheadMs = 90_000
    const start = { sentAt: time.now(), answeredAt: time.now(), serverAt: Date.now() }
    const clock = new ServerClock(time.now, start)
    const ofMachine = (): number => clock.now() + aheadMs
    const clocks = { ofMachine, ofServer: clock }
    const instance = beating(await registerInstance(store, sbc1), undefined, clocks)
    const other = beating(
      await registerInstance(store, { ...sbc1, name: 'sbc-2', installId: 'two' }),
    )
    await instance.become('serving')
    expect(instance.clockDifferenceMs).toBe(90_000)
    expect(log).toEqual(['warn'])
    const shown = async () => {
      await other.become('serving')
      return other.list().map(({ clockDifferenceMs }) => clockDifferenceMs)
    }
    await eventually(async () => expect(await shown()).toEqual([90_000, 0]))
    await instance.become('serving')
    aheadMs = -1_900
    await instance.become('serving')
    expect(log).toEqual(['warn', 'info'])
    await eventually(async () => expect(await shown()).toEqual([0, 0]))
    other.stop()
    instance.stop()
  })

  test('an instance whose name another process has taken is fenced for good', async () => {
    const instance = beating(await registerInstance(store, sbc1))
    await silence(10_000)
    await registerInstance(store, { ...sbc1, installId: 'two' })
    await instance.become('serving')
    expect([instance.condition, instance.isHoldingMoney(), log]).toEqual([
      'fenced',
      false,
      ['error'],
    ])
    await instance.become('serving')
    expect(await row()).toMatchObject({ epoch: 2, state: 'starting', install_id: 'two' })
  })

  test('an instance that is silent for long is fenced by another one, and only then gone', async () => {
    const silent = beating(
      await registerInstance(store, { ...sbc1, name: 'sbc-2', installId: 'two' }),
    )
    const instance = beating(await registerInstance(store, sbc1))
    await store.statements.execute(
      "UPDATE node SET heartbeat_at = heartbeat_at - 131000 WHERE name = 'sbc-2'",
    )
    await instance.become('serving')
    expect(instance.gone()).toEqual([])
    await instance.become('serving')
    expect(instance.gone()).toEqual([{ name: 'sbc-2', epoch: 2 }])
    await silent.become('serving')
    expect(silent.condition).toBe('fenced')
    instance.stop()
  })

  test('an instance that has granted for an hour is not gone before that is over', async () => {
    const silent = beating(
      await registerInstance(store, { ...sbc1, name: 'sbc-2', installId: 'two' }),
    )
    silent.grantsFor(() => 3_600)
    await silent.become('serving')
    silent.grantsFor(() => 60)
    await silent.become('serving')
    silent.stop()
    const instance = beating(await registerInstance(store, sbc1))
    const silence2 = (ms: number) =>
      store.statements.execute(
        `UPDATE node SET heartbeat_at = heartbeat_at - ${ms} WHERE name = 'sbc-2'`,
      )
    await silence2(3_660_000)
    for (const _ of [1, 2]) await instance.become('serving')
    expect(instance.gone()).toEqual([])
    await silence2(11_000)
    for (const _ of [1, 2]) await instance.become('serving')
    expect(instance.gone()).toEqual([{ name: 'sbc-2', epoch: 2 }])
    instance.stop()
  })
})
