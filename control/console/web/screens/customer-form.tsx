/** The dialog that makes or changes a customer. */
import { getRows, send } from '../api/api.ts'
import type { Customer, RatePlan } from '../api/views.ts'
import { isGlobal, may } from '../api/session.ts'
import { Dialog } from '../parts/dialog.tsx'
import { enteredIn, Field, textIn } from '../parts/form.tsx'
import { useResource } from '../parts/resource.ts'
import { changedFields, customerFields, fieldText, type CustomerField } from './customer-fields.ts'

const MONEY = String.raw`-?\d{1,9}(\.\d{1,6})?`

interface CustomerFormProps {
  /** Undefined: a new one. */
  readonly customer: Customer | undefined
  readonly onClose: () => void
}

export function CustomerForm({ customer, onClose }: CustomerFormProps) {
  const plans = useResource('rate plans', () => getRows<RatePlan>('/rate-plans?limit=200'))
  const isNew = customer === undefined
  return (
    <Dialog
      title={isNew ? 'New customer' : 'Change this customer'}
      action={isNew ? 'Create' : 'Save'}
      onConfirm={(form) => {
        const body = changedFields(customer, (name) =>
          enteredIn(form, name).replaceAll('\r\n', '\n'),
        )
        if (customer !== undefined) return send('PATCH', `/customers/${customer.id}`, body)
        const tenant = textIn(form, 'tenant')
        const balance = textIn(form, 'balance')
        const once = { ...(tenant !== '' && { tenant }), ...(balance !== '' && { balance }) }
        return send('POST', '/customers', { ...body, ...once })
      }}
      onClose={onClose}
    >
      <div class="fields">
        {customerFields.map((field) => (
          <CustomerFieldInput key={field.name} field={field} text={fieldText(field, customer)} />
        ))}
        {isNew && may('wallets:write') && (
          <Field
            label="Opening balance"
            name="balance"
            inputMode="decimal"
            pattern={MONEY}
            autoComplete="off"
          />
        )}
        {isNew && isGlobal() && (
          <Field label="Tenant" hint="optional" name="tenant" maxLength={64} autoComplete="off" />
        )}
      </div>
      <datalist id="rate-plans">
        {plans.data.value?.rows.map(({ id, name }) => (
          <option key={id} value={name} />
        ))}
      </datalist>
    </Dialog>
  )
}

function CustomerFieldInput({ field, text }: { field: CustomerField; text: string }) {
  const { name, label, kind, hint, isRequired } = field
  if (kind === 'flag')
    return (
      <label class="flag">
        <input type="checkbox" name={name} defaultChecked={text === 'on'} /> {label}
      </label>
    )
  const shared = { name, defaultValue: text, autoComplete: 'off' } as const
  return (
    <label>
      <span>
        {label} {hint !== undefined && <small>({hint})</small>}
      </span>
      {kind === 'lines' ? (
        <textarea {...shared} rows={3} maxLength={20_000} />
      ) : kind === 'money' ? (
        <input {...shared} inputMode="decimal" pattern={MONEY} />
      ) : kind === 'count' ? (
        <input {...shared} inputMode="numeric" pattern="\d{1,9}" />
      ) : (
        <input
          {...shared}
          type={kind === 'email' ? 'email' : 'text'}
          required={isRequired}
          maxLength={254}
          {...(name === 'rate_plan' && { list: 'rate-plans' })}
        />
      )}
    </label>
  )
}
