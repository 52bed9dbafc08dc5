/** Who is signed in, and what concerns only this user: colours, password, sign-out. */
import { signOut } from '../api/session.ts'
import type { User } from '../api/views.ts'
import { Choice, words } from '../parts/form.tsx'
import { visibleText } from '../parts/visible-text.ts'
import { setTheme, theme, themes } from './theme.ts'

export function Account({ user }: { user: User }) {
  return (
    <>
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
          value={theme.value}
          options={words(...themes)}
          onChange={setTheme}
        />
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      </div>
    </>
  )
}
