import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./design/tokens.css";
import "./design/base.css";
import "./design/elements.css";
import { followAccess } from "./api/access";
import { ApiError } from "./api/client";
import { App } from "./shell/app";
import { SignInWhereAsked } from "./shell/sign-in";

followAccess();

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      // What the server refused it refuses again; only a lost connection is worth another try.
      retry: (failures, error) => !(error instanceof ApiError) && failures < 2,
    },
  },
});

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App />
      <SignInWhereAsked />
    </QueryClientProvider>
  </StrictMode>,
);
