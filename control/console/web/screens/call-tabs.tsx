/** The two lists of calls, over each of them. */
import { may } from '../api/session.ts'
import { pathOf } from '../parts/address.ts'

const tabs = [
  { screen: 'history', text: 'Ended', scope: 'cdrs:read' },
  { screen: 'calls', text: 'In progress', scope: 'calls:read' },
] as const

export const CallTabs = ({ current }: { current: (typeof tabs)[number]['screen'] }) => (
  <p class="tabs">
    {tabs
      .filter(({ scope }) => may(scope))
      .map(({ screen, text }) => (
        <a
          key={screen}
          href={pathOf(screen)}
          aria-current={screen === current ? 'true' : undefined}
        >
          {text}
        </a>
      ))}
  </p>
)
