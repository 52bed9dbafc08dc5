/**
 * One customer: its state and what to do about it, the wallet, its day and calls; the ledger as a
 * bank statement, and the prices.
 */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { send } from '../api/api.ts'
import type { Customer, Wallet } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { Loaded } from '../parts/list.tsx'
import { PageHead } from '../parts/page-head.tsx'
import { useAsked } from '../parts/prefill.ts'
import { RowButtons } from '../parts/resource-screen.tsx'
import { address, go } from '../parts/router.ts'
import { may } from '../api/session.ts'
import { freshId } from '../api/browser.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Field } from '../parts/form.tsx'
import { figureText, moneyText } from '../parts/format.ts'
import { useView } from '../parts/resource.ts'
import { Facts, Problem, Text } from '../parts/text.tsx'
import { CallsOf } from './calls-of.tsx'
import { ChangesOf } from './changes-of.tsx'
import { customerAdvice, customerNoun, customerState } from './customer-form.tsx'
import { CustomerRates } from './customer-rates.tsx'
import { DayFigures } from './day-figures.tsx'
import { StatementView } from './statement.tsx'
import { Advice, PlanLink } from './thing-parts.tsx'

const REFRESH_MS = 5_000

const views = { '': 'Overview', statement: 'Statement', rates: 'Prices' } as const
type View = keyof typeof views

const viewIn = (text: string | undefined): View =>
  text === 'statement' || text === 'rates' ? text : ''

export function CustomerScreen({ id }: { id: string }) {
  const path = `/customers/${encodeURIComponent(id)}`
  const customer = useView<Customer>(path, { everyMs: 2 * REFRESH_MS })
  return (
    <Loaded of={customer}>
      {(known) => <CustomerDetails customer={known} path={path} onChange={customer.reload} />}
    </Loaded>
  )
}

interface DetailsProps {
  readonly customer: Customer
  /** Path of the customer in the API. */
  readonly path: string
  readonly onChange: () => void
}

function CustomerDetails({ customer, path, onChange }: DetailsProps) {
  const topUp = useAsked('top-up')
  /** Counts what this screen has moved: the money is loaded anew. */
  const moves = useSignal(0)
  const view = viewIn(address.value.query['view'])
  const [tone, text] = customerState(customer)
  return (
    <>
      <PageHead name={customer.name} state={[tone, text]}>
        {may('customers:write') && (
          <RowButtons
            noun={customerNoun()}
            row={customer}
            onChange={onChange}
            onRemove={() => go(pathOf('customers'))}
          />
        )}
        {may('wallets:write') && (
          <button type="button" class="primary" onClick={topUp.open}>
            Top up
          </button>
        )}
      </PageHead>
      <Advice tone={tone} text={customerAdvice(customer)} />
      {may('wallets:read') && <WalletFacts path={path} moves={moves.value} />}
      <Views id={`${customer.id}`} view={view} />
      {view === '' && <Overview customer={customer} />}
      {view === 'rates' && <CustomerRates customer={customer} />}
      {view === 'statement' && (
        <StatementView path={path} customer={customer} moves={moves.value} />
      )}
      {topUp.value && may('wallets:write') && (
        <TopUp
          path={path}
          currency={customer.currency}
          onClose={() => {
            topUp.close()
            moves.value += 1
            onChange()
          }}
        />
      )}
    </>
  )
}

function Views({ id, view }: { id: string; view: View }) {
  const seen = { '': true, statement: may('wallets:read'), rates: may('rates:read') }
  return (
    <nav class="tabs" aria-label="Views of the customer">
      {Object.entries(views).map(
        ([name, text]) =>
          seen[name as View] && (
            <a
              key={name}
              href={pathOf('customers', id, { view: name })}
              aria-current={name === view ? 'true' : undefined}
            >
              {text}
            </a>
          ),
      )}
    </nav>
  )
}

const limitText = (limit: number, unit = ''): string =>
  limit === 0 ? 'no limit' : `${figureText(limit)}${unit}`

function Overview({ customer }: { customer: Customer }) {
  const id = `${customer.id}`
  return (
    <>
      <DayFigures of={{ customer: id }} margin={{ by: 'customer', group: id }} />
      <h2>Set-up</h2>
      <Facts
        of={{
          'Its prices': <PlanLink name={customer.rate_plan} id={customer.rate_plan_id} />,
          Numbers: <Text value={customer.numbers.join(', ') || 'none'} max={300} />,
          'Spend a day, at most':
            customer.max_daily_spend === 0
              ? 'no limit'
              : moneyText(`${customer.max_daily_spend}`, customer.currency),
          'Calls at once, at most': limitText(customer.max_concurrent_calls),
          'Calls per second, at most': limitText(customer.max_cps),
          'Length of a call, at most': limitText(customer.max_call_seconds, ' s'),
          'Signs in with': <Text value={customer.email ?? 'no login'} max={80} />,
          Tenant: <Text value={customer.tenant ?? 'the platform'} />,
          Phones: may('extensions:read') && (
            <a href={pathOf('phones', undefined, { q: customer.name })}>those it pays for</a>
          ),
        }}
      />
      <CallsOf by="customer_id" text={id}>
        <ChangesOf kind="customer" id={id} named={`the customer ${customer.name}`} />
      </CallsOf>
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
          'Credit limit': money(wallet?.credit_limit?.toString()),
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
      done="The wallet is topped up."
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
