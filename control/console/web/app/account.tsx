/** Who is signed in, and what concerns only this user: colours, password, sign-out. */
import { useSignal } from '@preact/signals'
import { send } from '../api/api.ts'
import { signOut } from '../api/session.ts'
import type { User } from '../api/views.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Choice, enteredIn, Field, words } from '../parts/form.tsx'
import { pathOf } from '../parts/address.ts'
import { address } from '../parts/router.ts'
import { Problem } from '../parts/text.tsx'
import { visibleText } from '../parts/visible-text.ts'
import { setTheme, storedTheme, themes } from './theme.ts'

export function Account({ user }: { user: User }) {
  const isAsked = useSignal(false)
  /** The address at which the password was changed. */
  const doneAt = useSignal<object | undefined>(undefined)
  const refusal = useSignal<string | undefined>(undefined)
  const leave = async (): Promise<void> => {
    const why = await signOut()
    refusal.value = why && `You are still signed in: ${why}`
  }
  return (
    <>
      <span role="status" class="connection good" hidden={doneAt.value !== address.value}>
        {doneAt.value === address.value && 'Password changed'}
      </span>
      <button type="button" class="account-button" popovertarget="account">
        <span class="hidden">Account</span> {visibleText(user.username)}
      </button>
      <div id="account" class="account" popover="auto">
        <p>
          <strong>{visibleText(user.username)}</strong>
          <br />
          <small>
            {user.role}
            {user.tenant_slug !== null && ` of ${visibleText(user.tenant_slug)}`}
          </small>
        </p>
        <Choice
          label="Colours"
          name="theme"
          value={storedTheme()}
          options={words(...themes)}
          onChange={setTheme}
        />
        <p>
          <a href={pathOf('account')}>Second factor and sessions</a>
        </p>
        <button type="button" onClick={() => (isAsked.value = true)}>
          Change password
        </button>
        <button type="button" onClick={() => void leave()}>
          Sign out
        </button>
        <Problem message={refusal.value} />
      </div>
      {isAsked.value && (
        <PasswordDialog
          onClose={(isDone) => {
            isAsked.value = false
            doneAt.value = isDone ? address.value : undefined
          }}
        />
      )}
    </>
  )
}

const changePassword = (form: FormData) =>
  send('PUT', '/auth/password', {
    old_password: enteredIn(form, 'old_password'),
    new_password: enteredIn(form, 'new_password'),
  })

const PasswordDialog = ({ onClose }: { onClose: (isDone: boolean) => void }) => (
  <Dialog
    title="Change your password"
    action="Change password"
    onConfirm={changePassword}
    onClose={onClose}
  >
    <p>Your other sessions end; this one goes on.</p>
    <Field
      label="Old password"
      name="old_password"
      type="password"
      autoComplete="current-password"
      required
      maxLength={128}
    />
    <Field
      label="New password"
      hint="at least 8 characters"
      name="new_password"
      type="password"
      autoComplete="new-password"
      required
      minLength={8}
      maxLength={128}
    />
  </Dialog>
)
