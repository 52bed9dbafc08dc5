/** Light, dark, or as the system is; stored in this browser. */
import { effect, signal } from '@preact/signals'

const themes = ['as the system', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const STORED = 'tollgate.theme'

export const theme = signal<Theme>(
  themes.find((each) => each === localStorage.getItem(STORED)) ?? themes[0],
)

export const nextTheme = (): void => {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? themes[0]
}

export function applyTheme(): void {
  effect(() => {
    localStorage.setItem(STORED, theme.value)
    document.documentElement.dataset['theme'] = theme.value
  })
}
