/** One customer: the wallet, and the ledger as a bank statement. */
import { useSignal } from '@preact/signals'
import { get, send } from '../api/api.ts'
import type { Customer, LedgerEntry, Wallet } from '../api/api-types.ts'
import { may } from '../app/session.ts'
import { freshId } from '../browser.ts'
import { Dialog } from '../parts/dialog.tsx'
import { figureText, moneyText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Fact, Moment, Problem, Text } from '../parts/text.tsx'

const MAX_ENTRIES = 200
const REFRESH_MS = 5_000

const kinds = { topup: 'top-up', debit: 'call', adjust: 'adjustment', refund: 'refund' } as const

const columns: readonly ShownColumn<LedgerEntry>[] = [
  {
    ...{ name: 'date', title: 'Date', value: (entry) => entry.created_at },
    show: (entry) => <Moment at={entry.created_at} />,
  },
  {
    ...{ name: 'kind', title: 'Kind', value: (entry) => kinds[entry.kind] },
    show: (entry) => kinds[entry.kind],
  },
  {
    ...{ name: 'amount', title: 'Amount', value: (entry) => entry.amount },
    isFigure: true,
    show: (entry) => entry.amount_exact,
  },
  {
    ...{ name: 'balance', title: 'Balance after', value: (entry) => entry.balance_after },
    isFigure: true,
    show: (entry) => entry.balance_after_exact,
  },
  {
    ...{ name: 'note', title: 'Note', value: (entry) => entry.note ?? entry.ref },
    isMinor: true,
    show: (entry) => <Text value={entry.note ?? entry.ref} max={80} />,
  },
  {
    ...{ name: 'by', title: 'By', value: (entry) => entry.actor },
    isMinor: true,
    show: (entry) => <Text value={entry.actor} max={60} />,
  },
]

export function CustomerScreen({ id }: { id: string }) {
  const path = `/customers/${encodeURIComponent(id)}`
  const customer = useResource(path, () => get<Customer>(path))
  const wallet = useResource(path, () => get<Wallet>(`${path}/wallet`), { everyMs: REFRESH_MS })
  const ledger = useResource(
    path,
    () => get<LedgerEntry[]>(`${path}/ledger?limit=${MAX_ENTRIES}`),
    {
      everyMs: REFRESH_MS,
    },
  )
  const isAsking = useSignal(false)
  return (
    <>
      <Problem message={customer.problem.value} />
      <h2>
        <Text value={customer.data.value?.name} />
      </h2>
      {wallet.data.value !== undefined && <WalletFacts wallet={wallet.data.value} />}
      {may('wallets:write') && (
        <p>
          <button type="button" class="primary" onClick={() => (isAsking.value = true)}>
            Top up
          </button>
        </p>
      )}
      <Problem message={ledger.problem.value} />
      <Table
        label="Ledger"
        rows={ledger.data.value ?? []}
        columns={columns}
        keyOf={(entry) => entry.id}
        empty={ledger.data.value === undefined ? 'Loading …' : 'Nothing has moved yet.'}
      />
      {isAsking.value && (
        <TopUp
          path={path}
          currency={wallet.data.value?.currency ?? ''}
          onClose={() => {
            isAsking.value = false
            wallet.reload()
            ledger.reload()
          }}
        />
      )}
    </>
  )
}

const WalletFacts = ({ wallet }: { wallet: Wallet }) => (
  <dl class="facts">
    <Fact name="Balance">{moneyText(wallet.balance, wallet.currency)}</Fact>
    <Fact name="Reserved for live calls">{moneyText(wallet.reserved, wallet.currency)}</Fact>
    <Fact name="Available">{moneyText(wallet.available, wallet.currency)}</Fact>
    <Fact name="Credit limit">{figureText(wallet.credit_limit, 6)}</Fact>
    <Fact name="Open calls">{figureText(wallet.open_calls)}</Fact>
  </dl>
)

interface TopUpProps {
  readonly path: string
  readonly currency: string
  readonly onClose: () => void
}

function TopUp({ path, currency, onClose }: TopUpProps) {
  // The same for every attempt of this dialog: an answer that was lost does not double the money.
  const attempt = useSignal(freshId())
  return (
    <Dialog
      title="Top up this wallet?"
      action="Top up"
      onConfirm={(form) =>
        send(
          'POST',
          `${path}/wallet/adjust`,
          { amount: form.get('amount'), kind: 'topup', reason: form.get('reason') },
          { 'Idempotency-Key': attempt.value },
        )
      }
      onClose={onClose}
    >
      <label>
        Amount in {currency}
        <input
          name="amount"
          required
          inputMode="decimal"
          pattern="\d{1,9}(\.\d{1,6})?"
          autoComplete="off"
        />
      </label>
      <label>
        Reason
        <input name="reason" required maxLength={200} autoComplete="off" />
      </label>
    </Dialog>
  )
}
