/** Starts the console in its page. */
import { render } from 'preact'
import { followLinks } from './parts/router.ts'
import { findSession } from './api/session.ts'
import { App } from './app/shell.tsx'
import { applyTheme } from './app/theme.ts'
import 'uplot/dist/uPlot.min.css'
import './style.css'

applyTheme()
followLinks()
const root = document.getElementById('app')
if (root !== null) render(<App />, root)
void findSession()
