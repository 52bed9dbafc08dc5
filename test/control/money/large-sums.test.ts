/** Currencies of small units, such as VND and IDR: sums beyond 2^53 micro-units stay exact, everywhere. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { moneyToDecimal } from '../../../schema/columns.ts'
import { openControl } from '../../support/control.ts'
import { readValue, runSql } from '../../support/stored.ts'
import { isOnPostgres } from '../../support/on-sqlite.ts'

/** An amount as the model has it, and as it is written. */
const amounts = fc.bigInt({ min: 1n, max: 9_000_000_000_000_000n })

const decimal = (micros: bigint): string => {
  const sign = micros < 0n ? '-' : ''
  const size = micros < 0n ? -micros : micros
  return `${sign}${size / 1_000_000n}.${String(size % 1_000_000n).padStart(6, '0')}`
}

async function reseller() {
  const control = await openControl()
  const token = await control.key()
  const call = (method: string, path: string, body?: unknown) =>
    control.request(`/api/v1${path}`, { method, token, ...(body === undefined ? {} : { body }) })
  await call('POST', '/rate-plans', { name: 'vnd', currency: 'VND', decimals: 0 })
  await call('POST', '/rates', { rate_plan: 'vnd', prefix: '84', rate_per_minute: '250000' })
  const customer = { name: 'reseller', rate_plan: 'vnd', numbers: ['8490'] }
  const { id } = (await call('POST', '/customers', customer)).data<{ id: number }>()
  const adjust = (micros: bigint, kind = micros < 0n ? 'adjust' : 'topup') =>
    call('POST', `/customers/${id}/wallet/adjust`, { amount: decimal(micros), kind, reason: 'x' })
  return { ...control, id, call, adjust }
}

test('balances, ledger, reservations and answers agree with a model to the last micro-unit', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(amounts, fc.boolean()), { minLength: 4, maxLength: 12 }),
      async (moves) => {
        const { id, call, adjust, ocs, store, close } = await reseller()
        let model = 0n
        const after: string[] = []
        for (const [size, isOut] of moves) {
          const micros = isOut && size <= model ? -size : size
          model += micros
          after.unshift(moneyToDecimal(model))
          const answer = (await adjust(micros)).data<{ balance: string; amount_exact: string }>()
          expect(answer.balance).toBe(moneyToDecimal(model))
          expect(answer.amount_exact).toBe(moneyToDecimal(micros))
        }
        const { balance, balance_number } = (await call('GET', `/customers/${id}`)).data<{
          balance: string
          balance_number: number
        }>()
        expect([balance, balance_number]).toEqual([moneyToDecimal(model), Number(decimal(model))])
        const entries = (await call('GET', `/customers/${id}/ledger`)).data<
          { balance_after_exact: string }[]
        >()
        expect(entries.map((entry) => entry.balance_after_exact)).toEqual(after)
        expect(ocs.balanceOf(id)?.balanceMicros).toBe(model)
        await ocs.reloadCustomers()
        expect(ocs.balanceOf(id)?.balanceMicros).toBe(model)
        expect(await ocs.check()).toEqual([])
        const stored = readValue(store, 'SELECT CAST(balance_micros AS TEXT) FROM wallet')
        expect(await stored).toBe(String(model))
        await close()
      },
    ),
    { numRuns: isOnPostgres ? 4 : 20, endOnFailure: true },
  )
})

test('a call takes its price and nothing else from a balance beyond 2^53 micro-units', async () => {
  const { id, adjust, ocs, call, key, request, flushCalls } = await reseller()
  for (let turn = 0; turn < 3; turn += 1) await adjust(8_999_999_999_999_999n)
  const before = 3n * 8_999_999_999_999_999n
  const token = await key()
  const asked = await request('/api/ocs/authorize?caller=8490&callee=84123&call_uuid=a', { token })
  expect(asked.body).toMatchObject({ granted_seconds: 60, reserved: 250_000 })
  expect(ocs.balanceOf(id)?.availableMicros).toBe(before - 250_000_000_000n)
  const report = { call_uuid: 'a', caller: '8490', callee: '84123', billsec: 61 }
  /** Answers wait for the group commit. */
  const reported = async () => {
    const answer = request('/api/ocs/cdr', { token, body: report })
    const flushing = setInterval(flushCalls, 5)
    return answer.finally(() => clearInterval(flushing))
  }
  // Just past its grant, and the wallet has more: the whole 61 s, in whole dong, rounded up.
  const cost = 254_167_000_000n
  expect((await reported()).body).toMatchObject({ cost: 254_167, duplicate: false })
  expect(ocs.balanceOf(id)?.balanceMicros).toBe(before - cost)
  const wallet = (await call('GET', `/customers/${id}`)).data<{ balance: string }>()
  expect(wallet.balance).toBe(moneyToDecimal(before - cost))
  expect((await reported()).body).toMatchObject({ cost: 254_167, duplicate: true })
  expect(await ocs.check()).toEqual([])
})

test.each(['9000000000.000001', '9007199254740993', 1e300, '1e12', '99999999999999999999'])(
  'an amount of %s cannot be held: it is refused with the largest that can',
  async (amount) => {
    const { call, id, ocs } = await reseller()
    const body = { amount, kind: 'topup', reason: 'x' }
    const answer = await call('POST', `/customers/${id}/wallet/adjust`, body)
    expect([answer.status, answer.text.includes('9000000000')]).toEqual([400, true])
    expect(ocs.balanceOf(id)?.balanceMicros).toBe(0n)
  },
)

test('a balance that 64 bits cannot hold is refused, and nothing moves', async () => {
  const { adjust, id, ocs, store } = await reseller()
  const full = 9_000_000_000_000_000_000n
  await runSql(
    store,
    `INSERT INTO ledger_entry (wallet_id, kind, amount_micros, balance_after_micros, ref, actor, created_at)
       VALUES (1, 'topup', ?, ?, 'all', 'test', 0)`,
    full,
    full,
  )
  await runSql(store, 'UPDATE wallet SET balance_micros = ?', full)
  await ocs.reloadCustomers()
  const answer = await adjust(1n)
  expect([answer.status, answer.code]).toEqual([409, 'balance_out_of_range'])
  expect((await adjust(-1n)).status).toBe(200)
  expect(ocs.balanceOf(id)?.balanceMicros).toBe(full - 1n)
  expect(await ocs.check()).toEqual([])
})
