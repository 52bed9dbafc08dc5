/** Instances that see a node or a carrier differently, in virtual time. */
import { expect, test } from 'vitest'
import type { HeardInstance } from '../../../control/alerts/alert-ends.ts'
import type { NodeState, NodeStatus, SetStatus } from '../../../schema/contracts/engine.ts'
import { alertRig, destinationOf, nodeEvent, storeNodes, textsOf } from '../../support/alert-rig.ts'
import { start } from '../../support/books.ts'
import { nodeStatus } from '../../support/engine-views.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { runSql } from '../../support/stored.ts'
import { openTestStore } from '../../support/test-store.ts'

const text = `Node ${destinationOf(1)} of dispatcher set 1 is out of service: no answer`

type Seen = NodeState | 'not probed'

const nodeIn = (state: Seen): NodeStatus =>
  nodeStatus({
    destination: destinationOf(1),
    state: state === 'not probed' ? 'active' : state,
    lastProbe: state === 'not probed' ? null : { at: 0, status: 0, reason: 'no answer' },
    probes: { sent: 3, answered: state === 'active' ? 1 : 0, failed: state === 'active' ? 2 : 3 },
  })

/** Instances of one database; each sees what it is told to see. */
async function open(names: readonly string[], kind = 'node_down') {
  const store = await openTestStore(start)
  const time = new ManualTime(start)
  await storeNodes(store, 2)
  const lost = new Set<string>()
  const list = (): readonly HeardInstance[] =>
    names.map((name) => ({
      name,
      state: lost.has(name) ? 'lost' : 'serving',
      heartbeatAt: time.now(),
    }))
  const openInstance = async (name: string, key = name) => {
    let seen: Seen = 'active'
    const rig = alertRig(store, time, { instance: name, key, instances: list })
    rig.alerts.watchNodes((): readonly SetStatus[] => [{ setId: 1, nodes: [nodeIn(seen)] }])
    await rig.alerts.reload()
    rig.alerts.start()
    return { ...rig, see: (state: Seen) => void (seen = state) }
  }
  const rigs: Awaited<ReturnType<typeof openInstance>>[] = []
  for (const name of names) rigs.push(await openInstance(name))
  const [first] = rigs
  await first?.channel()
  await first?.rule({ on: kind, group_seconds: 0 })
  for (const rig of rigs) await rig.alerts.reload()
  /**
   * Resolves with what all instances have told in these seconds. An SQLite database has one
   * process: there each of them sends.
   */
  const keys = new Set<string>()
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second += 5) {
      time.advance(5_000)
      await store.settled()
    }
    expect(rigs.flatMap(({ problems }) => problems)).toEqual([])
    const sent = rigs.flatMap((rig) => rig.sent)
    return textsOf(sent.filter((each) => !keys.has(each.key) && keys.add(each.key))).flat()
  }
  const lose = (name: string) => void lost.add(name)
  const add = async (...given: Parameters<typeof openInstance>) => {
    const rig = await openInstance(...given)
    rigs.push(rig)
    return rig
  }
  const [a, b] = rigs
  if (a === undefined) throw new Error('no instance')
  return { store, time, a, b: b ?? a, pass, lose, add }
}

test('an alert of a node is open while one instance sees it out', async () => {
  const { a, b, pass } = await open(['a', 'b'])
  for (const rig of [a, b]) {
    rig.see('probing')
    await rig.write(nodeEvent(1, 'down'))
  }
  expect(await pass(70)).toEqual([text])
  a.see('active')
  await a.write(nodeEvent(1, 'up'))
  expect(await pass(310)).toEqual([])
  b.see('active')
  await b.write(nodeEvent(1, 'up'))
  expect(await pass(30)).toEqual([`over: ${text}`])
  expect(await pass(130)).toEqual([])
})

test('an instance that died does not hold an alert open, and one that starts again does', async () => {
  const { a, b, pass, lose } = await open(['a', 'b'])
  b.see('probing')
  await b.write(nodeEvent(1, 'down'))
  expect(await pass(70)).toEqual([text])
  b.die()
  lose('b')
  expect(await pass(65)).toEqual([])
  expect(await pass(250)).toEqual([`over: ${text}. No instance sees it so any more`])
  a.see('probing')
  await a.write(nodeEvent(1, 'down'))
  expect(await pass(30)).toEqual([text])
})

test('a node that comes back while the process is down is over once a probe has reached it', async () => {
  const { a, pass, add } = await open(['a'])
  a.see('probing')
  await a.write(nodeEvent(1, 'down'))
  expect(await pass(30)).toEqual([text])
  a.die()
  const again = await add('a', 'a again')
  again.see('not probed')
  expect(await pass(190)).toEqual([])
  again.see('active')
  expect(await pass(70)).toEqual([`over: ${text}`])
})

test('a node that failed, and whose event was lost, is told all the same; one in maintenance is not', async () => {
  const { a, pass } = await open(['a'])
  a.see('inactive')
  expect(await pass(130)).toEqual([])
  a.see('probing')
  expect(await pass(70)).toEqual([text])
  expect(await pass(130)).toEqual([])
  // Maintenance after a failure goes on with the same alert.
  a.see('inactive')
  expect(await pass(70)).toEqual([])
  a.see('active')
  expect(await pass(70)).toEqual([`over: ${text}`])
})

test('an alert of a carrier is open while one instance sees it out, and not for ever', async () => {
  const { a, b, store, pass, lose } = await open(['a', 'b'], 'carrier_down')
  await runSql(
    store,
    "INSERT INTO carrier (id, name, created_at, updated_at) VALUES (3, 'north', 0, 0)",
  )
  const event = (state: 'up' | 'down') => ({
    type: `carrier.${state}` as const,
    tenantId: null,
    data: { carrier_id: 3, carrier: 'north', reason: 'no answer' },
  })
  for (const rig of [a, b]) rig.alerts.watchCarriers(() => new Map([[3, 'down']]))
  await a.write(event('down'))
  const told = 'Carrier north is out of service: no answer'
  expect(await pass(70)).toEqual([told])
  // The return is told to webhooks by the first that sees it.
  a.alerts.watchCarriers(() => new Map([[3, 'up']]))
  await a.write(event('up'))
  expect(await pass(130)).toEqual([])
  b.alerts.watchCarriers(() => new Map([[3, 'up']]))
  expect(await pass(70)).toEqual([`over: ${told}`])
  b.alerts.watchCarriers(() => new Map([[3, 'down']]))
  await b.write(event('down'))
  expect(await pass(30)).toEqual([told])
  b.die()
  lose('b')
  expect(await pass(310)).toEqual([`over: ${told}. No instance sees it so any more`])
})
