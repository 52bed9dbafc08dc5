import { describe, expect, test } from 'vitest'
import { type InstanceChange, InstanceNews } from '../../../engine/stores/instance-news.ts'
import type { OutgoingEvent } from '../../../schema/contracts/engine.ts'
import { registerInstance } from '../../../schema/instances/instance-registry.ts'
import { type ServerStore } from '../../../schema/postgres/open.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'

const lost: InstanceChange = {
  type: 'node.lost',
  node: 'sbc-9',
  address: 'http://10.0.0.9',
  epoch: 1,
}
const recovered: InstanceChange = { ...lost, type: 'node.recovered' }
const fenced: InstanceChange = { ...lost, type: 'node.fenced' }

describe.runIf(hasPostgres)('what instances that live tell of another one', () => {
  async function opened() {
    const database = await sharedDatabase()
    const store = await database.open()
    const instance = { name: 'sbc-9', installId: 'nine', address: lost.address, version: '1.0.0' }
    await registerInstance(store, instance)
    const silent = (ms: number) =>
      store.statements.execute(
        `UPDATE node SET heartbeat_at = floor(extract(epoch FROM clock_timestamp()) * 1000) - ${ms}`,
      )
    await silent(20_000)
    return { ...database, store, silent }
  }
  /** One that lives. */
  function teller(store: ServerStore) {
    const [delivered, shown]: [string[], string[]] = [[], []]
    const news = new InstanceNews({
      store,
      now: () => 0,
      log: () => undefined,
      sink: {
        writeAll: async (events: readonly OutgoingEvent[]) =>
          void delivered.push(...events.map(({ type, data }) => `${type} ${String(data['node'])}`)),
      },
      events: { add: ({ type }) => void shown.push(type) },
    })
    /** Until it has told or given up. */
    const tell = async (...changes: readonly InstanceChange[]): Promise<void> => {
      for (const change of changes) {
        news.add(change)
        await news.retry()
      }
    }
    return { delivered, shown, tell }
  }

  test('each change is delivered and shown once, by one of them', async () => {
    const { store, open, silent } = await opened()
    const tellers = [teller(store), teller(await open()), teller(await open())]
    const all = async (change: InstanceChange): Promise<readonly string[]> => {
      await Promise.all(tellers.map(({ tell }) => tell(change)))
      return tellers.flatMap(({ delivered, shown }) => [...delivered.splice(0), ...shown.splice(0)])
    }
    expect(await all(lost)).toEqual(['node.lost sbc-9', 'node.lost'])
    expect(await all(lost)).toEqual([])
    expect(await all(fenced)).toEqual(['node.fenced sbc-9', 'node.fenced'])
    expect(await all(fenced)).toEqual([])
    await silent(0)
    expect(await all(recovered)).toEqual(['node.recovered sbc-9', 'node.recovered'])
    expect(await all(recovered)).toEqual([])
    await silent(20_000)
    expect(await all(lost)).toEqual(['node.lost sbc-9', 'node.lost'])
  })
})
