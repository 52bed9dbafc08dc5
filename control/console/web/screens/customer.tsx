/**
 * One customer: the wallet, the ledger as a bank statement, the prices, and a link to the calls.
 */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { send } from '../api/api.ts'
import type { Customer, Wallet } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { useAsked } from '../parts/prefill.ts'
import { RowButtons } from '../parts/resource-screen.tsx'
import { address, go } from '../parts/router.ts'
import { may } from '../api/session.ts'
import { freshId } from '../api/browser.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Field } from '../parts/form.tsx'
import { figureText, moneyText, unitText } from '../parts/format.ts'
import { useView } from '../parts/resource.ts'
import { Badge, Facts, Problem, Text } from '../parts/text.tsx'
import { customerNoun, customerState } from './customer-form.tsx'
import { CustomerRates } from './customer-rates.tsx'
import { StatementView } from './statement.tsx'

const REFRESH_MS = 5_000

export function CustomerScreen({ id }: { id: string }) {
  const path = `/customers/${encodeURIComponent(id)}`
  const customer = useView<Customer>(path, { everyMs: 2 * REFRESH_MS })
  const known = customer.data.value
  const topUp = useAsked('top-up')
  /** Counts what this screen has moved: the money is loaded anew. */
  const moves = useSignal(0)
  const isOfRates = address.value.query['view'] === 'rates'
  return (
    <>
      <Problem message={customer.problem.value} />
      <h2>
        <Text value={known?.name} />{' '}
        {known !== undefined && (
          <Badge tone={customerState(known)[0]}>{customerState(known)[1]}</Badge>
        )}
      </h2>
      <p class="tools">
        {may('wallets:write') && (
          <button type="button" class="primary" onClick={topUp.open}>
            Top up
          </button>
        )}
        <Views id={id} isOfRates={isOfRates} />
      </p>
      {may('customers:write') && (
        <RowButtons
          noun={customerNoun()}
          row={known}
          onChange={customer.reload}
          onRemove={() => go(pathOf('customers'))}
        />
      )}
      {may('wallets:read') && <WalletFacts path={path} moves={moves.value} />}
      {isOfRates
        ? known !== undefined && <CustomerRates customer={known} />
        : may('wallets:read') && <StatementView path={path} customer={known} moves={moves.value} />}
      {topUp.value && may('wallets:write') && (
        <TopUp
          path={path}
          currency={known?.currency ?? ''}
          onClose={() => {
            topUp.close()
            moves.value += 1
            customer.reload()
          }}
        />
      )}
    </>
  )
}

function Views({ id, isOfRates }: { id: string; isOfRates: boolean }) {
  return (
    <>
      <a href={pathOf('customers', id)} aria-current={isOfRates ? undefined : 'true'}>
        Statement
      </a>
      {may('rates:read') && (
        <a
          href={pathOf('customers', id, { view: 'rates' })}
          aria-current={isOfRates ? 'true' : undefined}
        >
          Rates
        </a>
      )}
      {may('cdrs:read') && (
        <a href={pathOf('history', undefined, { by: 'customer_id', for: id, days: '30' })}>
          Recent calls
        </a>
      )}
    </>
  )
}

function WalletFacts({ path, moves }: { path: string; moves: number }) {
  const { data, problem, reload } = useView<Wallet>(`${path}/wallet`, { everyMs: REFRESH_MS })
  useEffect(() => void (moves > 0 && reload()), [moves])
  const wallet = data.value
  const money = (exact: string | undefined) => moneyText(exact ?? null, wallet?.currency ?? '')
  return (
    <>
      <Problem message={problem.value} />
      <Facts
        of={{
          Balance: money(wallet?.balance),
          'Reserved for live calls': money(wallet?.reserved),
          Available: money(wallet?.available),
          'Credit limit': unitText(wallet?.credit_limit, wallet?.currency ?? '', 6),
          'Open calls': figureText(wallet?.open_calls),
        }}
      />
    </>
  )
}

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
      <Field
        label={`Amount in ${currency}`}
        name="amount"
        required
        inputMode="decimal"
        pattern="\d{1,9}(\.\d{1,6})?"
        autoComplete="off"
      />
      <Field label="Reason" name="reason" required maxLength={200} autoComplete="off" />
    </Dialog>
  )
}
