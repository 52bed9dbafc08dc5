import { expect, test } from 'vitest'
import type { OutgoingEvent } from '../../../schema/contracts/engine.ts'
import { addCustomer, addPlan, endedCall, openStore, ocsOn, question } from '../../support/books.ts'

/** 0.06 a minute, in steps of six seconds: 0.006 each. */
const sixSeconds = {
  prefix: '1',
  first_increment_seconds: 6,
  increment_seconds: 6,
  first_rate_per_minute_micros: 60_000,
  rate_per_minute_micros: 60_000,
}

/** A customer, and what is told of its wallet. */
async function walletWith(
  balanceMicros: number,
  terms: { readonly max_daily_spend_micros?: number } = {},
) {
  const store = await openStore()
  const told: OutgoingEvent[] = []
  const planId = await addPlan(store, [sixSeconds])
  const customer = { name: '+15550001', rate_plan_id: planId, ...terms }
  const customerId = await addCustomer(store, customer)
  const sink = {
    wants: () => true,
    writeAll: async (events: readonly OutgoingEvent[]) => void told.push(...events),
  }
  let books = await ocsOn(store, undefined, 'deny', sink)
  let refs = 0
  const move = async (kind: 'topup' | 'adjust', amountMicros: number) => {
    refs += 1
    const move = { customerId, kind, amountMicros, ref: `move-${refs}`, actor: 'test', note: null }
    return books.ocs.move(move)
  }
  if (balanceMicros > 0) await move('topup', balanceMicros)
  return {
    move,
    ocs: () => books.ocs,
    restart: async () => {
      books = await ocsOn(store, books.time, 'deny', sink)
    },
    /** Reports a call that talked for so long; undefined: as long as it was granted. */
    talk: async (uuid: string, seconds?: number): Promise<void> => {
      const { time, ocs } = books
      const verdict = await ocs.authorize(question(uuid, '1555'))
      if (verdict.kind !== 'granted') return
      const last = await ocs.extend(uuid, verdict.grantedSeconds)
      const granted = last.kind === 'granted' ? last.grantedSeconds : verdict.grantedSeconds
      const stored = ocs.report(endedCall(uuid, seconds ?? granted, { calledNumber: '1555' }))
      time.advance(100)
      await stored
    },
    depletions: () =>
      told.filter(({ type }) => type === 'wallet.depleted').map(({ data }) => data.balance_exact),
  }
}

test('a call that is cut for lack of funds depletes the wallet, although something is left', async () => {
  const { talk, depletions } = await walletWith(20_000)
  await talk('a')
  expect(depletions()).toEqual(['0.002'])
})

test('a depletion is told once, however many calls are cut, and again after money has come', async () => {
  const wallet = await walletWith(50_000)
  const { ocs } = wallet
  const uuids = ['a', 'b', 'c']
  for (const uuid of uuids) await ocs().authorize(question(uuid, '1555'))
  for (const uuid of uuids) await wallet.talk(uuid)
  expect(wallet.depletions()).toEqual(['0.002'])
  await wallet.restart()
  await wallet.talk('after a restart')
  await wallet.move('adjust', -2_000)
  expect(wallet.depletions()).toEqual(['0.002'])
  await wallet.move('topup', 10_000)
  await wallet.talk('d')
  expect(wallet.depletions()).toEqual(['0.002', '0.004'])
})

test('a call that ends by itself, or at its daily limit, depletes nothing', async () => {
  const { talk, depletions } = await walletWith(20_000)
  await talk('a', 12)
  expect(depletions()).toEqual([])
  const limited = await walletWith(100_000_000, { max_daily_spend_micros: 20_000 })
  await limited.talk('b')
  expect(limited.depletions()).toEqual([])
})

test('a balance that sinks to nothing depletes the wallet once', async () => {
  const { move, depletions } = await walletWith(20_000)
  await move('adjust', -20_000)
  expect(depletions()).toEqual(['0.00'])
  await move('topup', 1)
  await move('adjust', -1)
  expect(depletions()).toEqual(['0.00', '0.00'])
})
